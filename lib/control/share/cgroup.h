/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that this process's control group may have: cgroups(7), of either version. */
#ifndef CONTROL_CGROUP_H
#define CONTROL_CGROUP_H

#include <stdint.h>

/*
 * The least limit of the group and of those above it, in octets. UINT64_MAX: there is none that can
 * be read.
 */
uint64_t cgroup_memory_limit(void);

/* ... as the files under these names say, which are /proc/self/cgroup and /sys/fs/cgroup. */
uint64_t cgroup_memory_limit_of(const char *membership, const char *mounts);

#endif
