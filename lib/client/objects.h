/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library remembers of its objects besides what programs see: who still uses one
 * (EBUSY), how many events were handed out, and the number by which the engine names it in
 * events. The number is never used twice, so an event that arrives for a destroyed object finds
 * nothing and is dropped.
 */
#ifndef CLIENT_OBJECTS_H
#define CLIENT_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

enum object_kind {
	OBJECT_CONTEXT,
	OBJECT_CHANNEL,
	OBJECT_CQ,
	OBJECT_QP,
	OBJECT_SRQ,
};

struct object {
	uint64_t id; /* the cookie of its events; 0: not entered */
	enum object_kind kind;
	uint32_t users; /* objects that refer to this one */
	uint32_t async_delivered; /* events that ibv_get_async_event handed out */
	uint32_t comp_delivered; /* ... ibv_get_cq_event */
};

/* The lock of the table and of the counts of delivered events. */
void objects_lock(void);
void objects_unlock(void);

/* Gives the object its number. 0 or ENOMEM. */
int object_enter(struct object *o, enum object_kind kind);
/* From now on no event finds it; what was delivered stays counted. */
void object_leave(struct object *o);
/* With the lock held: the object of this number and kind, or NULL. */
struct object *object_find(uint64_t id, enum object_kind kind);
/* With the lock held: every object of a kind. */
void objects_each(enum object_kind kind, void (*visit)(struct object *o, void *argument),
		  void *argument);

static inline void object_use(struct object *o)
{
	__atomic_add_fetch(&o->users, 1, __ATOMIC_RELAXED);
}

static inline void object_unuse(struct object *o)
{
	__atomic_sub_fetch(&o->users, 1, __ATOMIC_RELAXED);
}

static inline bool object_busy(const struct object *o)
{
	return __atomic_load_n(&o->users, __ATOMIC_RELAXED) != 0;
}

#endif
