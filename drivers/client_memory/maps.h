/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program's address space holds: /proc/self/maps and smaps, without malloc. */
#ifndef CLIENT_MEMORY_MAPS_H
#define CLIENT_MEMORY_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mapping {
	uintptr_t start, end;
	uint64_t offset; /* in the file, octets */
	uint64_t inode; /* 0: no file */
	dev_t device;
	bool readable, writable, executable, shared;
	bool stack; /* the first thread's */
	bool special; /* smaps: locked, not forked, device, huge or wiped: VmFlags says so */
};

/*
 * The mappings that touch [from, to), in order of address. flags: also fill `special`, which costs
 * a walk over the page tables of everything below `to`. Returns how many, the first max if there
 * are more; -1 with errno.
 */
int maps_read(uintptr_t from, uintptr_t to, bool flags, struct mapping *out, int max);

#endif
