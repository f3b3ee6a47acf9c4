/* SPDX-License-Identifier: BSD-3-Clause */
/* The libraries of DPDK's drivers, all of which the EAL loads from one folder. */
#ifndef DRIVERS_DRIVER_FILE_H
#define DRIVERS_DRIVER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * Whether this file, as dlopen() gets it, is a driver's, and no `name` is the beginning of the driver's.
 * False for NULL, which names the program itself.
 */
static inline bool driver_file_is_other(const char *file, const char *const *name, size_t names)
{
	const char *driver = file != NULL ? strstr(file, "/librte_") : NULL;

	if (driver == NULL || strstr(file, "/pmds-") == NULL)
		return false;
	driver += strlen("/librte_");
	for (size_t i = 0; i < names; i++)
		if (strncmp(driver, name[i], strlen(name[i])) == 0)
			return false;
	return true;
}

#endif
