/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Promotion, in the client (part of libibverbs.so.1): the library puts private pages of a
 * registered region into one memory file of the process, the promoted file. The engine maps that
 * file, too, and then accesses the pages without a system call. Demotion makes them private again.
 *
 *	before	| ...... private anonymous memory ...... |
 *	after	| private | shared: the promoted file | private |	same addresses, same contents
 *
 * Other threads may read and write the range meanwhile: a userfaultfd holds writers back until the
 * file is mapped instead of the pages. Without the privilege for a full userfaultfd, a system call
 * of another thread that writes into the range would fail with EFAULT meanwhile. So
 * UROCE_PROMOTE=auto (the default) then promotes only in a program of one thread. `on` promotes in
 * any case, `off` never.
 *
 * These are not promoted, but accessed as peer memory (peer.h):
 *
 *  - pages that the region fills only in part, unless they belong to an allocation that has its
 *    pages to itself (promote_edge.c)
 *  - regions of less than 64 KiB after the first 64 of them: each is a mapping of its own, and a
 *    program that registers for each transfer would pay more than it gains
 *  - regions of more than 1 GiB
 *  - all but private anonymous read-write memory
 *  - the caller's stack and thread-local storage, and this library's own data
 *  - ranges that are locked, or have mbind, MADV_DONTFORK or MADV_WIPEONFORK
 *  - what exceeds the bounds in config/limits.h
 *
 * docs/memory.md says what a program sees when it resizes, remaps, protects or discards such
 * memory, or forks.
 *
 * During promotion and demotion the engine's copies through /proc/self/mem fail (Linux 6.18: EIO).
 * So pages that the engine accesses as peer memory for any region are neither promoted nor demoted.
 *
 * A fork's child gets private copies of all promoted pages as they were at the fork. Other threads
 * do not write them while they are copied (promote_hold.c). If threads cannot be held back, the
 * memory is taken back before the fork, and regions stay registered without it
 * (promote_take_back.c). Data that the engine writes meanwhile may be copied in part, as with
 * hardware, whose writes do not wait for a fork either. After vfork or clone(2) the child gets no
 * copies, because it calls exec next.
 */
#ifndef CLIENT_MEMORY_PROMOTE_H
#define CLIENT_MEMORY_PROMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/limits.h"
#include "memory/mr_backing.h"

/*
 * Each range has its own slot of the file. If the program enlarges the range with mremap(2), the
 * new part is a hole of the file. No program has enough address space to reach the next slot.
 */
#define PROMOTE_SLOT_SHIFT 47u
#define PROMOTE_SLOTS	   (UINT64_C(1) << 15)
#define PROMOTE_FILE_BYTES (PROMOTE_SLOTS << PROMOTE_SLOT_SHIFT) /* sparse */

/*
 * The promoted file of this process, for COMMAND_PROMOTED_FILE. The first call makes it. -1: this
 * process does not promote. The file stays the library's. A fork's child gets its own. Any thread
 * may call these functions.
 */
int promote_file(void);

/* A region, and which parts of its memory are promoted. */
struct promote_region {
	uintptr_t start;
	size_t length;
	uint32_t count;
	struct mr_backing *backing; /* for the engine: the region's parts in the promoted file */
	bool known; /* promote_peer.c has noted the other parts as peer memory */
	uint32_t leaves; /* for the engine: how often the memory had been taken back before */
};

/*
 * With `wanted`, promotes what can be promoted of [start, start + length). Fills in which parts of
 * the range are in the promoted file (fd BACKING_PROMOTED): `count` of them, 0 .. max, sorted. The
 * caller keeps the struct and its backings for promote_leave. It calls promote_leave once the
 * engine has confirmed that the region is no longer registered. The parts that no other region
 * needs are then demoted.
 */
void promote_enter(struct promote_region *r, uint32_t max, bool wanted);
void promote_leave(const struct promote_region *r);

/*
 * Sets how the engines learn that the memory is taken back (COMMAND_LEAVE_PROMOTED). The thread
 * that forks calls `leave`, after all other fork handlers. `leave` must not allocate memory. It
 * returns false if an engine may still use the file.
 */
void promote_before_fork(bool (*leave)(uint32_t leaves));

/* The same for memory that is not registered. Nothing is noted as peer memory. */
uint32_t promote_range(void *addr, size_t length, struct mr_backing *backing, uint32_t max);
void promote_release(const struct mr_backing *backing, uint32_t count);

#endif
