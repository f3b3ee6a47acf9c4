/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library remembers of its objects besides what programs see: who still uses one
 * (EBUSY), how many events were handed out, and the number by which the engine names it in
 * events. The number is never used twice, so an event that arrives for a destroyed object finds
 * nothing and is dropped.
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
	uint64_t id; /* the cookie of its events; 0: not entered */
	enum verbs_object_kind kind;
	uint32_t users; /* objects that refer to this one */
	uint32_t async_delivered; /* events that ibv_get_async_event handed out */
	uint32_t comp_delivered; /* ... ibv_get_cq_event */
};

/* The lock of the table and of the counts of delivered events. */
void verbs_objects_lock(void);
void verbs_objects_unlock(void);

/* Gives the object its number. 0 or ENOMEM. */
int verbs_object_enter(struct verbs_object *o, enum verbs_object_kind kind);
/* From now on no event finds it; what was delivered stays counted. */
void verbs_object_leave(struct verbs_object *o);
/* With the lock held: the object of this number and kind, or NULL. */
struct verbs_object *verbs_object_find(uint64_t id, enum verbs_object_kind kind);
/* With the lock held: every object of a kind. */
void verbs_objects_each(enum verbs_object_kind kind,
			void (*visit)(struct verbs_object *o, void *argument), void *argument);

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
