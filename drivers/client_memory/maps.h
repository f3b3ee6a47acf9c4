/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the address space of this process from /proc/self/maps and smaps, without malloc and stdio,
 * and without locks as long as there is a /proc (maps_kept.h). The engine and its programs'
 * libraries use it.
 */
#ifndef CLIENT_MEMORY_MAPS_H
#define CLIENT_MEMORY_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Marks that a program sets with madvise(2) and mlock(2). Promotion and demotion keep them. */
enum mapping_mark {
	MARK_LOCKED = 1,
	MARK_DONTFORK = 2,
	MARK_DONTDUMP = 4,
	MARK_HUGE = 8,
	MARK_NOT_HUGE = 16,
	MARK_SEQUENTIAL = 32,
	MARK_RANDOM = 64,
};

struct mapping {
	uintptr_t start, end;
	uint64_t offset; /* in the file, octets */
	uint64_t inode; /* 0: no file */
	dev_t device;
	bool readable, writable, executable, shared;
	bool named; /* the kernel gives it a name such as [heap] or [vdso] */
	bool stack; /* the stack of the first thread */
	bool special; /* VmFlags in smaps: locked, not forked, wiped, device memory or huge pages */
	uint32_t marks; /* enum mapping_mark */
};

#define MAPS_TEXT 4096u /* octets that the kernel returns at once */

struct maps {
	int fd;
	bool kept; /* it is the descriptor of maps_kept.h */
	uint32_t at, end; /* of the text that is not parsed yet */
	char text[MAPS_TEXT];
};

/*
 * Reads the mappings one by one, without `special` and `marks`. maps_open returns 0 or an errno.
 * maps_next returns false at the end.
 */
int maps_open(struct maps *f);
bool maps_next(struct maps *f, struct mapping *m);
void maps_close(struct maps *f);

/*
 * Writes the mappings that overlap [from, to) to `out`, in order of address, at most `max`. With
 * `flags` it also fills in `special` and `marks`. For them the kernel walks the page tables of
 * everything below `to`. Returns the number of mappings, or -1 with errno. Any thread.
 */
int maps_read(uintptr_t from, uintptr_t to, bool flags, struct mapping *out, int max);

#endif
