/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client side (part of libibverbs.so.1): private pages of a registered region move into one memory
 * file of the process, which the engine maps too; it then reaches them without a system call.
 *
 *	before	| ...... private anonymous memory ...... |
 *	after	| private | shared: the promoted file | private |	same addresses, same contents
 *
 * Other threads may read and write the range meanwhile: a userfaultfd holds back whoever writes,
 * until the file is mapped in place of the pages. Without the privilege for a full userfaultfd a
 * system call of another thread that writes into the range would fail with EFAULT meanwhile; so
 * UROCE_PROMOTE=auto (the default) promotes then only in a program of one thread. `on` does so in
 * any case, `off` never.
 *
 * Not promoted, but reached as peer memory: pages that the region does not fill (but for those of an
 * allocation that has its pages for itself: promote_edge.c), after the first 64 regions also less
 * than 64 KiB (each is a mapping of its own, and a program that registers for each transfer would
 * pay more than it gains), more than 1 GiB, what is not private
 * anonymous read-write memory, stacks and thread-local storage of the caller, this library's own
 * data, locked, mbind'ed, MADV_DONTFORK or MADV_WIPEONFORK ranges, and what does not fit the
 * bounds below. What a program sees of it when it grows, shrinks, moves, protects or discards such
 * memory, or forks: docs/memory.md.
 *
 * While a range is on its way, copies of the engine to and from it through /proc/self/mem fail
 * (Linux 6.18: EIO). So pages that some registered region has as peer memory do not move.
 *
 * A fork's child gets private copies of all promoted pages, as they were at the fork: the other
 * threads do not write them while they are copied (promote_hold.c: not in a program of many threads
 * without the privilege, unless UROCE_PROMOTE=on). What the engine writes meanwhile may be there in
 * part, as with hardware, whose writes no fork waits for either. After vfork or a bare clone there
 * is none of that, as the child runs exec next.
 */
#ifndef CLIENT_MEMORY_PROMOTE_H
#define CLIENT_MEMORY_PROMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/mr_backing.h"

#define PROMOTE_SMALL	   (UINT64_C(64) << 10) /* what is less than that, is small */
#define PROMOTE_SMALL_MAX  64u /* small regions of a process, ever */
#define PROMOTE_LENGTH_MAX (UINT64_C(1) << 30)
#define PROMOTE_RANGES_MAX 4096u
/*
 * Each range has a slot of the file for itself: what mremap(2) shows behind it, when the program
 * makes it larger, is a hole. No program has so much address space that it comes to the next one.
 */
#define PROMOTE_SLOT_SHIFT 47u
#define PROMOTE_SLOTS	   (UINT64_C(1) << 15)
#define PROMOTE_FILE_BYTES (PROMOTE_SLOTS << PROMOTE_SLOT_SHIFT) /* sparse */

/*
 * The process's promoted file for COMMAND_PROMOTED_FILE, made when first asked for; -1 when this
 * process does not promote. Stays the library's. A fork's child has another one.
 */
int promote_file(void);

/* What became of a region's memory. */
struct promote_region {
	uintptr_t start;
	size_t length;
	uint32_t count;
	struct mr_backing *backing; /* what the engine is told: parts of it in the promoted file */
	bool known; /* what is peer memory was noted, in promote_peer.c */
};

/*
 * Promotes what can be promoted of [start, start + length), with `wanted`, and fills in which parts
 * of it are in the promoted file (fd BACKING_PROMOTED): `count` of them, 0 .. max, sorted. The
 * caller keeps the struct and the backings for promote_leave, when the region is no longer
 * registered (the engine has confirmed it): what no other region needs becomes private memory again.
 */
void promote_enter(struct promote_region *r, uint32_t max, bool wanted);
void promote_leave(const struct promote_region *r);

/* The same for memory that is registered nowhere: nothing is noted of what does not move. */
uint32_t promote_range(void *addr, size_t length, struct mr_backing *backing, uint32_t max);
void promote_release(const struct mr_backing *backing, uint32_t count);

#endif
