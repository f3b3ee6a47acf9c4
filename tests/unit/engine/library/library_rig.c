/* SPDX-License-Identifier: BSD-3-Clause */
#include "library_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>

void library_begin(void)
{
	char prefix[64];
	char *argv[] = { (char *)"test",
			 (char *)"--no-huge",
			 (char *)"--no-shconf",
			 (char *)"-m128",
			 (char *)"--no-pci",
			 (char *)"--lcores=0@(0-1),1@(0-1)",
			 (char *)"--no-telemetry",
			 (char *)"--log-level=*:error",
			 prefix };

	setenv("UROCE_SOCKET", "/nonexistent", 1); /* nobody but ourselves */
	snprintf(prefix, sizeof(prefix), "--file-prefix=uroce-library-%d", getpid());
	cr_assert_geq(rte_eal_init(sizeof(argv) / sizeof(argv[0]), argv), 0);
}

void library_end(void)
{
	char folder[256];

	snprintf(folder, sizeof(folder), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	rmdir(folder);
}

struct uroce_options library_options(void)
{
	return (struct uroce_options){ .size = sizeof(struct uroce_options),
				       .lcores = 1,
				       .adaptive = true,
				       .socket_gid = -1,
				       .pool_size = 2048 };
}

struct uroce_engine *library_engine(void)
{
	struct uroce_options o = library_options();
	char why[256];
	struct uroce_engine *e = uroce_create(&o, why, sizeof(why));

	cr_assert_not_null(e, "%s", why);
	return e;
}

struct uroce_address library_address(uint8_t host)
{
	return (struct uroce_address){
		.octet = { [10] = 0xff, 0xff, 10, 9, 0, host },
		.prefix = 24,
	};
}

struct ibv_context *library_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = NULL;

	cr_assert_not_null(list);
	for (int i = 0; list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			c = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	cr_assert_not_null(c, "%s cannot be opened", name);
	return c;
}
