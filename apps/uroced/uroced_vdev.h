/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device of --vdev that EAL did not make although EAL started: which one, and whether the user
 * can mend it.
 */
#ifndef APPS_UROCED_VDEV_H
#define APPS_UROCED_VDEV_H

#include <stdbool.h>

struct rte_devargs;

/* The first one that its driver did not make; NULL: all were made. */
const struct rte_devargs *vdev_missing(void);
/* The process that listens at the device's socket (net_memif); 0: unknown, or there is none. */
int vdev_holder(const struct rte_devargs *a);
/*
 * Whether the device needs something that this process lacks, perhaps only now: an interface or a
 * file that its arguments name, or the right to use interfaces. Then the same command line may be
 * right on another machine or later.
 */
bool vdev_needs_machine(const struct rte_devargs *a);

#endif
