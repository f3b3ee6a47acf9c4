/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program's address space holds: /proc/self/maps and smaps, read without malloc, stdio and
 * locks. The engine and the libraries of its programs both use it.
 */
#ifndef CLIENT_MEMORY_MAPS_H
#define CLIENT_MEMORY_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a program set with madvise(2) and mlock(2), and finds again after its pages have moved. */
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
	bool named; /* the kernel has a name for it: [heap], [vdso] */
	bool stack; /* the first thread's */
	bool special; /* smaps: locked, not forked, device, huge or wiped: VmFlags says so */
	uint32_t marks; /* enum mapping_mark */
};

#define MAPS_TEXT 4096u /* what the kernel gives at once */

struct maps {
	int fd;
	uint32_t at, end; /* what of text is not read yet */
	char text[MAPS_TEXT];
};

/* Without `special` and `marks`. maps_open: 0 or an errno. maps_next: false behind the last one. */
int maps_open(struct maps *f);
bool maps_next(struct maps *f, struct mapping *m);
void maps_close(struct maps *f);

/*
 * The mappings that touch [from, to), in order of address. flags: also fill `special` and `marks`, which costs
 * a walk over the page tables of everything below `to`. Returns how many, the first max if there
 * are more; -1 with errno.
 */
int maps_read(uintptr_t from, uintptr_t to, bool flags, struct mapping *out, int max);

#endif
