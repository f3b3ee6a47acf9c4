/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims slots of a CQ's ring, which several lcores fill at once. Head and tail each hold a
 * position and a count of operations in one 64-bit word. An SRQ's ring (srq_ring.c) needs only the
 * last of these three:
 *
 *	begin	adds 1 to position and count of head; the slot at the old position is ours
 *	finish	adds 1 to the count of tail; if the counts are equal now, no operation is under way,
 *		all slots before head's position are finished, and tail takes that position over
 *	show	writes that position to the shared word that the program reads
 *
 * Two lcores may finish one after the other and reach the shared word in the opposite order, so
 * show only ever advances it. A compare-and-swap fails only because another lcore's succeeded, and
 * fewer than LIMIT_LCORES can be behind us, so the tries are bounded. A program that writes the
 * word itself harms only itself.
 */
#ifndef QUEUE_CLAIM_H
#define QUEUE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "config/limits.h"

static inline uint64_t claim_word(uint32_t position, uint32_t count)
{
	return (uint64_t)count << 32 | position;
}

static inline uint32_t claim_position(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t claim_count(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* Whether position a is before b, modulo 2^32. */
static inline bool claim_is_behind(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/*
 * True: the slot at the position in *head is ours. False: another lcore has changed the word, and
 * *head is its new value. Acquire: what others did to the slot before is over. Release: pairs with
 * claim_finish.
 */
static inline bool claim_begin(uint64_t *word, uint64_t *head)
{
	return __atomic_compare_exchange_n(
		word, head, claim_word(claim_position(*head) + 1, claim_count(*head) + 1), true,
		__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/*
 * Ends an operation. True: all operations that began before *position have ended, and the caller
 * must call claim_show for it.
 */
static inline bool claim_finish(const uint64_t *head, uint64_t *tail, uint32_t *position)
{
	uint64_t old = __atomic_load_n(tail, __ATOMIC_ACQUIRE), next, newest;

	/*
	 * Release: we are done with our slot. Acquire: those that finished before us are done with
	 * theirs.
	 */
	do {
		newest = __atomic_load_n(head, __ATOMIC_ACQUIRE);
		next = claim_word(claim_position(old), claim_count(old) + 1);
		if (claim_count(next) == claim_count(newest))
			next = newest;
	} while (!__atomic_compare_exchange_n(tail, &old, next, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	*position = claim_position(next);
	return *position != claim_position(old);
}

/* Release: pairs with the program's acquire load; we are done with the slots before `position`. */
static inline void claim_show(uint32_t *shared, uint32_t position)
{
	uint32_t shown = __atomic_load_n(shared, __ATOMIC_RELAXED);

	for (uint32_t tries = 0; tries <= LIMIT_LCORES && claim_is_behind(shown, position); tries++)
		if (__atomic_compare_exchange_n(shared, &shown, position, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return;
}

#endif
