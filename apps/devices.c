/* SPDX-License-Identifier: BSD-3-Clause */
#include "devices.h"

#include <stdint.h>
#include <string.h>

struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = NULL;

	for (uint32_t i = 0; list != NULL && list[i] != NULL && c == NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			c = ibv_open_device(list[i]);
	if (list != NULL)
		ibv_free_device_list(list);
	return c;
}
