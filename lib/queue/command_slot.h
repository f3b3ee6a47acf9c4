/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of an attached program in the arena, each in a slot. The program fills the slots in turn
 * and the engine executes them in turn. The state of a slot is a futex.
 *
 *	program                                      engine (control thread)
 *	fill, state = AWAITED or POSTED (release)
 *	write the eventfd                     --->   wakes up
 *	                                             state (acquire), copy the request, execute it
 *	wait while AWAITED                    <---   fill in the reply, exchange the state (release);
 *	                                             if it was AWAITED: wake the program
 *	take the reply, state = FREE
 *
 * A POSTED command has no reply. A program that needs its slot again makes it AWAITED, and waits.
 *
 * The engine copies a request before it looks at it, since the program can change it at any time. A
 * program that forges a state harms only itself.
 */
#ifndef QUEUE_COMMAND_SLOT_H
#define QUEUE_COMMAND_SLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "config/limits.h"

enum slot_state {
	SLOT_FREE,
	SLOT_POSTED, /* a request without a reply */
	SLOT_AWAITED, /* a request; the program sleeps until the state changes, or is about to */
	SLOT_REPLY, /* the reply is in the slot */
	SLOT_ON_SOCKET, /* the reply is on the socket, because descriptors come with it */
	SLOT_ENDED, /* the engine has ended the connection */
};

struct command_slot {
	uint32_t state; /* enum slot_state */
	uint32_t octets; /* of the contents */
	uint32_t reserved[14];
	uint8_t contents[LIMIT_COMMAND_BYTES];
};

struct command_slots {
	struct command_slot slot[LIMIT_COMMAND_SLOTS];
};

static inline uint32_t slot_state(const struct command_slot *s)
{
	return __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
}

static inline bool slot_has_request(const struct command_slot *s)
{
	uint32_t state = slot_state(s);

	return state == SLOT_POSTED || state == SLOT_AWAITED;
}

/* ---- the engine ---- */

/*
 * Copies the request. Returns its octets, or more than LIMIT_COMMAND_BYTES if the program wrote
 * such a number; then nothing is copied.
 */
static inline uint32_t slot_take(const struct command_slot *s, void *to)
{
	uint32_t octets = __atomic_load_n(&s->octets, __ATOMIC_RELAXED);

	if (octets <= LIMIT_COMMAND_BYTES)
		memcpy(to, s->contents, octets);
	return octets;
}

/* True: wake whoever waits for the state. Release: pairs with the program's acquire load of it. */
static inline bool slot_finish(struct command_slot *s, enum slot_state state)
{
	return __atomic_exchange_n(&s->state, state, __ATOMIC_ACQ_REL) == SLOT_AWAITED;
}

/* As slot_finish, with the reply. A posted command gets none. */
static inline bool slot_answer(struct command_slot *s, const void *reply, size_t octets)
{
	if (slot_state(s) == SLOT_POSTED)
		return slot_finish(s, SLOT_FREE);
	memcpy(s->contents, reply, octets);
	__atomic_store_n(&s->octets, (uint32_t)octets, __ATOMIC_RELAXED);
	return slot_finish(s, SLOT_REPLY);
}

/* ---- the program ---- */

static inline void slot_fill(struct command_slot *s, const void *request, size_t octets,
			     enum slot_state state)
{
	memcpy(s->contents, request, octets);
	__atomic_store_n(&s->octets, (uint32_t)octets, __ATOMIC_RELAXED);
	__atomic_store_n(&s->state, state, __ATOMIC_RELEASE);
}

/* The posted request of this slot is waited for from now on, unless it is executed already. */
static inline void slot_await(struct command_slot *s)
{
	uint32_t posted = SLOT_POSTED;

	__atomic_compare_exchange_n(&s->state, &posted, SLOT_AWAITED, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
}

/* Copies at most `most` octets of the reply. Returns how many there are. */
static inline size_t slot_reply(struct command_slot *s, void *to, size_t most)
{
	uint32_t octets = __atomic_load_n(&s->octets, __ATOMIC_RELAXED);

	octets = MIN_OF(octets, LIMIT_COMMAND_BYTES);
	memcpy(to, s->contents, MIN_OF(octets, most));
	__atomic_store_n(&s->state, SLOT_FREE, __ATOMIC_RELAXED);
	return octets;
}

#endif
