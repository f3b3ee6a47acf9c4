/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shortens the searches of the EAL's start. The EAL has no option for that, and three quarters of the system calls of an
 * engine's start and end were these:
 * - The EAL resolves and loads each driver of its folder, 128 libraries. A program needs a few of them.
 * - The EAL asks sysfs for 1,024 processors, and for 128 of them in each of 32 NUMA nodes. Machines have a few of both.
 *
 * A program that links this has a readdir() and an access() that stand before libc's. They leave out drivers that are not
 * wanted, and know which processors and nodes the machine cannot have. The library for embedding does not have them.
 */
#ifndef DRIVERS_EAL_SEARCH_H
#define DRIVERS_EAL_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Before rte_eal_init(): readdir() leaves out the libraries of drivers ("librte_NAME...") whose names begin with none of
 * these. Without this call it leaves out none. The names stay the caller's, and must stay as they are.
 */
void eal_search_want(const char *const *driver, size_t drivers);

/*
 * Whether sysfs cannot have this file, because it is of a processor or a NUMA node past the last one. `last_cpu` and
 * `last_node`: the highest numbers that the machine may ever have.
 */
bool eal_search_is_past(const char *path, unsigned long last_cpu, unsigned long last_node);

/* The last number of a list of the kernel's, such as "0-3,8-11"; ULONG_MAX if it does not end with one. */
unsigned long eal_search_last(const char *list);

#endif
