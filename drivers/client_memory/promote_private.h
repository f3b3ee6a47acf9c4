/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of promotion. The caller of each function holds promote_state.lock. */
#ifndef CLIENT_MEMORY_PROMOTE_PRIVATE_H
#define CLIENT_MEMORY_PROMOTE_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"

#define PAGE ((uintptr_t)4096)

/* A part of the promoted file that regions use. Parts are sorted by offset and do not overlap. */
struct part {
	uint64_t offset, length;
	uint32_t users;
	/* Of the whole range that was promoted at once. took 0: this piece was split off. */
	int64_t promoted_at; /* ns */
	int64_t took; /* ns of CPU time */
	uintptr_t region_start, region_end; /* the pages of the region it was promoted for */
	uintptr_t home_start, home_end; /* the addresses of the pages */
};

/* A range whose promotion was not worth it. */
struct vain {
	uintptr_t start, end;
	uint32_t times;
	uint32_t wait; /* for how many registrations it had to wait the last time */
	uint32_t waits; /* for how many registrations it still has to wait */
};

/* A budget of CPU time: a fixed amount, and a share of the time since the first spending. */
struct promote_budget {
	int64_t spent, since; /* ns */
};

/* All state is in one object, so that it can easily be kept from being promoted itself. */
struct promote_state {
	pthread_mutex_t lock;
	bool ready; /* fork handlers are in place */
	bool refused; /* this process does not promote */
	int fd;
	ino_t inode;
	dev_t device;
	bool waiting; /* there are parts without users that could not be demoted yet */
	uint32_t next_slot;
	/* one bit for each slot that is never used again: private mappings show its holes, ... */
	uint64_t left[PROMOTE_SLOTS / 64];
	uint64_t frozen[PROMOTE_SLOTS / 64]; /* ... or even their pages, which must stay */
	bool any_left;
	uint32_t leaves; /* how often a fork has taken memory back, or tried to */
	bool leave_failed; /* some engine may reach promoted memory as peer memory now */
	uint32_t small; /* small regions so far; never decreases */
	uint32_t parts;
	struct part part[LIMIT_PROMOTE_RANGES];
	struct mapping found[LIMIT_PROMOTE_RANGES];
	struct vain vain[LIMIT_PROMOTE_VAIN]; /* by hash of the range */
	struct promote_budget vainly; /* spent on promoting in vain */
	struct promote_budget looked; /* spent on looking at marks of memory before promotion */
	int fork_cancel; /* queue/cancel.h */
	uint8_t octets[64 << 10]; /* on their way into the file */
};

extern struct promote_state promote_state;

/* promote_file.c */

/*
 * Whether there is a promoted file, and its descriptor is still ours. Makes the file, if this
 * process promotes.
 */
bool promote_have_file(void);
/* False: writes would exceed RLIMIT_FSIZE, which may change. The signal would end the program. */
bool promote_may_write(void);
/* Whether the mapping is of the promoted file. */
bool promote_is_ours(const struct mapping *m);
/*
 * False: promote_state.fd may be another file's by now, because some programs close descriptors
 * that they do not know.
 */
bool promote_fd_is_ours(void);
/* Frees the pages of the file in this range. */
void promote_drop_pages(uint64_t offset, uint64_t length);

/* promote_fork.c. False: there was no memory for the handlers. */
bool promote_watch_forks(void);

/*
 * promote_hold.c: keeps other threads from writing this memory until promote_let_go, or
 * promote_hold_forget in the child. `m` must stay valid until then. Memory that cannot be held is
 * not.
 */
void promote_hold(const struct mapping *m, uint32_t count);
/* The copies are made, so the fork should be over soon. Starts the clock that ends deadlocks. */
void promote_hold_copied(void);
void promote_let_go(void);
void promote_hold_forget(void);
/* Whether promote_hold would hold all of these mappings, or there is no other thread. */
bool promote_can_hold(const struct mapping *m, uint32_t count);

/* promote_may.c: whether that mapping, or a piece of one, may be promoted. */
bool promote_allowed(const struct mapping *m);

/* promote_peer.c */

/* Notes the parts of the region that are not promoted as peer memory. Fills in `known`. */
void promote_peer_enter(struct promote_region *r);
void promote_peer_leave(const struct promote_region *r);
/* Whether anything in [start, end) is, or may be, peer memory. */
bool promote_peer_is(uintptr_t start, uintptr_t end);
/* Whether there are regions that could not be noted. Any memory may then be peer memory. */
bool promote_peer_unknown(void);
/* The first address from `at` on that is not peer memory. */
uintptr_t promote_peer_behind(uintptr_t at);
/* The first address from `at` on that is peer memory, or `end`. */
uintptr_t promote_peer_next(uintptr_t at, uintptr_t end);
/* In the child of a fork: forgets all regions, which are the parent's. */
void promote_peer_forget(void);

/*
 * promote_edge.c: whether the region is an allocation that has all its pages to itself, including
 * the first and the last.
 */
bool promote_owns_edges(uintptr_t region, uint64_t length);

/* promote_worth.c */

/* CLOCK_MONOTONIC, in ns. */
int64_t promote_now(void);
/* CPU time of this thread in ns. What other threads do meanwhile is not counted. */
int64_t promote_work_now(void);
/* Whether UROCE_PROMOTE=on. */
bool promote_in_any_case(void);
/* A look at the marks of a region's memory, which began at CPU time `begin`, is done. */
void promote_looked(int64_t begin);
/* Whether to promote the pages of a region. Call it once for each registration. */
bool promote_pays(uintptr_t start, uintptr_t end);
/*
 * Notes whether promoting a part was worth it: the part was needed until then, and demotion took
 * `back` ns.
 */
void promote_paid(const struct part *p, int64_t until, int64_t back);

/* promote_parts.c */

/* False: the table is full. */
bool promote_insert_part(uint32_t at, struct part p);
void promote_remove_part(uint32_t at);
/* The first part that ends after the offset. */
uint32_t promote_part_at(uint64_t offset);
/* Splits the part that crosses `offset`. False: the table is full. */
bool promote_split_part(uint64_t offset);
/* Counts one more user of [offset, offset + length) of a slot. False: the table is full. */
bool promote_use_parts(uint64_t offset, uint64_t length);
/* The offset of a slot without parts; UINT64_MAX: there is none. */
uint64_t promote_find_slot(void);
/* Where the pages of part i end: at the next part of its slot, or at the end of the slot. */
uint64_t promote_reach(uint32_t i);

/* promote_pages.c. False: nothing has changed. */

/* Puts the pages of `m`, which are private, into the file. */
bool promote_pages_into_file(const struct mapping *m, uint64_t offset);
/*
 * Replaces a mapping of the file, or a piece of one, by private memory with the same octets,
 * protection and marks. No thread may write the mapping meanwhile.
 */
bool promote_replace_by_copy(const struct mapping *m);
/*
 * The same in two steps: makes private memory with those octets (or returns MAP_FAILED), and maps
 * it in place of the mapping. If promote_state.fd is another file's, the mapping must be readable.
 */
void *promote_copy_of(const struct mapping *m);
bool promote_put_copy(void *copy, const struct mapping *m);
/* Makes the pages of `m`, which are in the file, private again. */
bool promote_pages_out_of_file(const struct mapping *m);

/*
 * Replaces the mapping by a private one, which shows the same pages of the file until they are
 * written.
 */
bool promote_map_privately(const struct mapping *m);
/*
 * Finds the first data of the file in [*from, end). Returns 1 if there is some, in [*from, *to), 0
 * if there is none, or -1.
 */
int promote_find_data(uint64_t *from, uint64_t *to, uint64_t end);

/*
 * promote_marks.c: fills in `special` and `marks` of a mapping of the file, or of a piece of one.
 * False: the file is not mapped there any more.
 */
bool promote_read_marks(struct mapping *m);

/* promote_take_back.c */

/*
 * Whether the mapping of the file, or piece of one, is still there. The program may have mapped
 * something else at its address since it was read. To be asked just before it is replaced.
 */
bool promote_is_there(const struct mapping *m);
/*
 * Makes a mapping of the file private without holding threads back. Its pages that are in the file
 * become private pages. `holes`: all its pages do. False: the mapping is still shared.
 */
bool promote_take_back(const struct mapping *m, bool holes);
/* Frees the pages of the file in this range, unless private mappings need them. */
void promote_drop_left(uint64_t offset, uint64_t length);
/* Whether the slot is never used again. */
bool promote_slot_is_left(uint64_t offset);
/* Frees pages of the file that the kernel made when holes were touched in private mappings. */
void promote_tidy_left(void);
/* In the child of a fork: its file is a new one. */
void promote_forget_left(void);

/*
 * promote_back.c: counts one user less of [offset, offset + length), and demotes parts without
 * users.
 */
void promote_release_parts(uint64_t offset, uint64_t length);
/*
 * Demotes parts that could not be demoted before, because they were also peer memory of another
 * region.
 */
void promote_release_waiting(void);

#endif
