/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's record of each verbs object, hidden from programs: how many objects refer to
 * it (EBUSY), how many of its events were delivered, and the number by which the engine names it in
 * events. A number is never used twice, so an event for a destroyed object finds nothing and is
 * dropped.
 */
#ifndef CLIENT_VERBS_OBJECT_H
#define CLIENT_VERBS_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

enum verbs_object_kind {
	VERBS_OBJECT_CONTEXT,
	VERBS_OBJECT_CHANNEL,
	VERBS_OBJECT_CQ,
	VERBS_OBJECT_QP,
	VERBS_OBJECT_SRQ,
};

struct verbs_object {
	uint64_t id; /* the cookie of its events; 0: not in the table */
	enum verbs_object_kind kind;
	uint32_t users; /* objects that refer to this one */
	uint32_t async_delivered; /* events that ibv_get_async_event returned */
	uint32_t comp_delivered; /* events that ibv_get_cq_event returned */
};

/* The lock of the table and of all counts of delivered events. */
void verbs_objects_lock(void);
void verbs_objects_unlock(void);

/* Enters the object in the table and gives it its number. 0 or ENOMEM. */
int verbs_object_enter(struct verbs_object *o, enum verbs_object_kind kind);
/* Takes the object out of the table: events no longer find it. Its counts stay. */
void verbs_object_leave(struct verbs_object *o);
/* The object of this number and kind, or NULL. The caller holds the lock. */
struct verbs_object *verbs_object_find(uint64_t id, enum verbs_object_kind kind);
/* Calls `visit` for every object of a kind. The caller holds the lock. */
void verbs_objects_each(enum verbs_object_kind kind,
			void (*visit)(struct verbs_object *o, void *argument), void *argument);

/*
 * Counts of references, kept by threads of one program. Relaxed: only the caller of a destroying
 * verb reads them, and it must not race with verbs that use the object (ibv_destroy_cq(3) and the
 * like).
 */
static inline void verbs_object_use(struct verbs_object *o)
{
	__atomic_add_fetch(&o->users, 1, __ATOMIC_RELAXED);
}

static inline void verbs_object_unuse(struct verbs_object *o)
{
	__atomic_sub_fetch(&o->users, 1, __ATOMIC_RELAXED);
}

static inline bool verbs_object_busy(const struct verbs_object *o)
{
	return __atomic_load_n(&o->users, __ATOMIC_RELAXED) != 0;
}

#endif
