/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engines of this process. A program's pointer is looked up here before it is used, so that one
 * whose engine is gone gives an error and not a crash.
 *
 * A call that looks into an engine is counted while it is inside, and the thread that destroys the
 * engine waits for it:
 *
 *	a visitor			the destroyer
 *	counts itself in		closes the engine
 *	sees whether it is closed	sees whether a call is counted
 *
 * All four are sequentially consistent, so one of the two sees the other. Each thread counts itself at
 * a door of its own, as long as there are enough doors, so that lcores do not share a cache line. All later
 * threads share the last door.
 *
 * A place stays closed and busy from the end of an engine until the next one is complete: no call
 * that found the old engine gets in on the way.
 */
#include <errno.h>
#include <rte_common.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "engine/inside.h"

#define DOORS	    16u
#define SHARED_DOOR (DOORS - 1)

struct door {
	uint32_t inside; /* atomic: calls that came in by it */
} __rte_cache_aligned;

static struct place {
	const struct engine *engine; /* atomic; NULL: free */
	uint32_t changing; /* atomic: a call has live_enter()ed it */
	uint32_t closed; /* atomic: no call comes in any more */
	struct door door[DOORS];
} live[LIMIT_EMBEDDED_ENGINES] = { [0 ... LIMIT_EMBEDDED_ENGINES - 1] = { .changing = 1,
									  .closed = 1 } };

static uint32_t next_door;
static __thread uint32_t own_door = DOORS; /* none yet */

/* NULL: there is none. */
static struct place *place_of(const void *engine)
{
	for (uint32_t i = 0; engine != NULL && i < LIMIT_EMBEDDED_ENGINES; i++)
		if (__atomic_load_n(&live[i].engine, __ATOMIC_SEQ_CST) == engine)
			return &live[i];
	return NULL;
}

int live_add(struct engine *e)
{
	for (uint32_t i = 0; i < LIMIT_EMBEDDED_ENGINES; i++) {
		const struct engine *none = NULL;

		if (__atomic_compare_exchange_n(&live[i].engine, &none, e, false, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			return 0;
	}
	return ENOSPC;
}

void live_remove(const struct engine *e)
{
	struct place *p = place_of(e);

	if (p == NULL)
		return;
	__atomic_store_n(&p->closed, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->changing, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->engine, NULL, __ATOMIC_SEQ_CST);
}

/* ---- visitors ---- */

static struct door *door_of(struct place *p)
{
	if (own_door == DOORS) {
		own_door = SHARED_DOOR;
		if (__atomic_load_n(&next_door, __ATOMIC_RELAXED) < SHARED_DOOR)
			own_door = MIN_OF(__atomic_fetch_add(&next_door, 1, __ATOMIC_RELAXED),
					  SHARED_DOOR);
	}
	return &p->door[own_door];
}

/* Nobody else writes the count of a thread's own door, so one store with a fence does it. */
static void come_in(uint32_t *inside)
{
	if (own_door == SHARED_DOOR)
		__atomic_fetch_add(inside, 1, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(inside, *inside + 1, __ATOMIC_SEQ_CST);
}

static void go_out(uint32_t *inside)
{
	if (own_door == SHARED_DOOR)
		__atomic_fetch_sub(inside, 1, __ATOMIC_RELEASE);
	else
		__atomic_store_n(inside, *inside - 1, __ATOMIC_RELEASE);
}

struct visit live_visit(const struct uroce_engine *u)
{
	struct place *p = place_of(u);
	struct door *door;

	if (p == NULL)
		return (struct visit){ NULL, NULL };
	door = door_of(p);
	come_in(&door->inside);
	/* Another engine may have taken this place since. */
	if (__atomic_load_n(&p->closed, __ATOMIC_SEQ_CST) == 0 &&
	    __atomic_load_n(&p->engine, __ATOMIC_SEQ_CST) == (const void *)u)
		return (struct visit){ (struct engine *)(uintptr_t)u, &door->inside };
	go_out(&door->inside);
	return (struct visit){ NULL, NULL };
}

void live_part(struct visit v)
{
	go_out(v.inside);
}

static bool nobody_inside(const struct place *p)
{
	for (uint32_t i = 0; i < DOORS; i++)
		if (__atomic_load_n(&p->door[i].inside, __ATOMIC_SEQ_CST) != 0)
			return false;
	return true;
}

bool live_close(const struct engine *e, nanotime until)
{
	struct place *p = place_of(e);

	__atomic_store_n(&p->closed, 1, __ATOMIC_SEQ_CST);
	while (!nobody_inside(p)) {
		if (clock_now() >= until)
			return false;
		sched_yield();
	}
	return true;
}

void live_open(const struct engine *e)
{
	__atomic_store_n(&place_of(e)->closed, 0, __ATOMIC_SEQ_CST);
}

/* ---- one call changes it at a time ---- */

int live_enter(struct uroce_engine *u, struct engine **e)
{
	struct place *p = place_of(u);

	if (p == NULL)
		return EINVAL;
	if (__atomic_exchange_n(&p->changing, 1, __ATOMIC_SEQ_CST) != 0)
		return EBUSY;
	if (__atomic_load_n(&p->engine, __ATOMIC_SEQ_CST) != (const void *)u) {
		__atomic_store_n(&p->changing, 0, __ATOMIC_RELEASE);
		return EINVAL;
	}
	*e = (struct engine *)u;
	return 0;
}

void live_leave(const struct engine *e)
{
	struct place *p = place_of(e);

	if (p != NULL)
		__atomic_store_n(&p->changing, 0, __ATOMIC_RELEASE);
}

bool struct_take(void *to, size_t known, const void *from, const char *name, char *why,
		 size_t why_size)
{
	const uint8_t *octet = from;
	size_t given = 0;

	why[0] = '\0';
	if (from != NULL)
		memcpy(&given, from, sizeof(given));
	if (given <= sizeof(given)) {
		snprintf(why, why_size, "%s.size must be sizeof(struct %s), not %zu", name, name,
			 given);
		return false;
	}
	for (size_t i = known; i < given; i++)
		if (octet[i] != 0) {
			snprintf(why, why_size,
				 "%s has a member that uroce " UROCE_VERSION
				 " does not know: it ends after %zu octets",
				 name, known);
			return false;
		}
	memset(to, 0, known);
	memcpy(to, from, given < known ? given : known);
	return true;
}
