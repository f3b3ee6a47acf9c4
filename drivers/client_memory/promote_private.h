/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of promotion share. The caller of each function holds the lock. */
#ifndef CLIENT_MEMORY_PROMOTE_PRIVATE_H
#define CLIENT_MEMORY_PROMOTE_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"

#define PAGE		  ((uintptr_t)4096)
#define PROMOTE_PEERS_MAX 4096u /* ranges of memory that is not promoted */

/* A part of the promoted file that regions use; sorted by offset, not overlapping. */
struct part {
	uint64_t offset, length;
	uint32_t users;
	/* of the whole range that it moved with; took 0: a piece that was cut off it */
	int64_t moved_at, took; /* nanoseconds; of work */
	uintptr_t region_start, region_end; /* the pages of the region for which it was */
	uintptr_t home_start, home_end; /* where they were */
};

/* A range that was promoted in vain. */
struct vain {
	uintptr_t start, end;
	uint32_t times;
	uint32_t wait; /* registrations, the last time */
	uint32_t waits; /* ... that are left of it */
};

#define PROMOTE_VAIN_MAX 256u

/* All of it is one object: it must not move itself. */
struct promote_state {
	pthread_mutex_t lock;
	bool ready; /* fork handlers are in place */
	bool refused; /* this process does not promote */
	int fd;
	ino_t inode;
	dev_t device;
	bool waiting; /* parts without users that could not go back yet */
	uint32_t next_slot;
	uint32_t small; /* regions that were: it does not go down */
	uint32_t parts;
	struct part part[PROMOTE_RANGES_MAX];
	struct mapping found[PROMOTE_RANGES_MAX];
	struct vain vain[PROMOTE_VAIN_MAX]; /* by hash */
	int64_t lost, since; /* nanoseconds that went for nothing, since when */
	int fork_cancel; /* base/cancel.h */
};

extern struct promote_state promote_state;

/* promote_file.c */

/* Makes it if this process promotes and it is not there. */
bool promote_have_file(void);
/* Beyond RLIMIT_FSIZE, which may change, a write raises a signal that ends the program. */
bool promote_may_write(void);
/* Whether that shows a part of the promoted file. */
bool promote_is_ours(const struct mapping *m);
void promote_drop_pages(uint64_t offset, uint64_t length);

/* promote_fork.c: false: there is no memory for the handlers. */
bool promote_watch_forks(void);

/*
 * promote_hold.c: no other thread writes this memory (m stays where it is) until promote_let_go, or
 * (in the child) promote_hold_forget. Where that cannot be had, nothing is held.
 */
void promote_hold(const struct mapping *m, uint32_t count);
/* What was to be done meanwhile is done: from now on it should not take long. */
void promote_hold_copied(void);
void promote_let_go(void);
void promote_hold_forget(void);

/* promote_may.c: whether that mapping, or piece of one, may move. */
bool promote_may_move(const struct mapping *m);

/* promote_peer.c */

/* What of the region is not promoted is peer memory from now on. Fills in `known`. */
void promote_peer_enter(struct promote_region *r);
void promote_peer_leave(const struct promote_region *r);
/* Whether something in [start, end) is, or may be. */
bool promote_peer_is(uintptr_t start, uintptr_t end);
/* There are regions of which it is not known: anything may be. */
bool promote_peer_unknown(void);
/* The first address from `at` on that is not, and the next behind that which is, or end. */
uintptr_t promote_peer_behind(uintptr_t at);
uintptr_t promote_peer_next(uintptr_t at, uintptr_t end);
/* In the child of a fork: no region is its. */
void promote_peer_forget(void);

/*
 * promote_edge.c: whether the region, which may be read, is an allocation that has its pages for
 * itself, the first and the last included.
 */
bool promote_owns_edges(uintptr_t region, uint64_t length);

/* promote_worth.c */

int64_t promote_now(void);
/* ... of the processor's time for this thread: others that run meanwhile are not our cost. */
int64_t promote_work_now(void);
/* UROCE_PROMOTE=on. */
bool promote_in_any_case(void);
/* Whether to move the pages of a region; asked once for each registration. */
bool promote_pays(uintptr_t start, uintptr_t end);
/* A part was needed until then, and took so long on its way back: was it worth it? */
void promote_paid(const struct part *p, int64_t until, int64_t back);

/* promote_parts.c */

/* False: there are as many parts as may be. */
bool promote_insert_part(uint32_t at, struct part p);
void promote_remove_part(uint32_t at);
/* First part that ends behind offset. */
uint32_t promote_part_at(uint64_t offset);
/* Cuts the part that goes across `offset` in two. */
bool promote_split_part(uint64_t offset);
/* One more user of [offset, offset + length) of a slot; what nobody used before is a part then. */
bool promote_use_parts(uint64_t offset, uint64_t length);
/* The offset of a slot without parts, UINT64_MAX if there is none. */
uint64_t promote_find_slot(void);
/* Where the pages that go with part i end: at the next part of its slot, or with the slot. */
uint64_t promote_reach(uint32_t i);

/* promote_move.c. False: nothing changed. */

/* The pages of `m`, which are in no file. */
bool promote_move_into_file(const struct mapping *m, uint64_t offset);
/*
 * Private memory with the file's octets takes the place of its mapping, or of a piece of it, and is
 * protected and marked as that is. Nobody may write it meanwhile.
 */
bool promote_replace_by_copy(const struct mapping *m);
/* The same in two steps: private memory with those octets (MAP_FAILED: none), then in its place. */
void *promote_copy_of(const struct mapping *m);
bool promote_put_copy(void *copy, const struct mapping *m);
bool promote_move_out_of_file(const struct mapping *m);

/* promote_back.c: one user less of [offset, offset + length). */
void promote_release_parts(uint64_t offset, uint64_t length);
/* What could not go back because some other region had it as peer memory. */
void promote_release_waiting(void);

#endif
