/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots of one ring that several lcores fill (a CQ) or empty (an SRQ) at once. Head and tail are a
 * position and a count of operations in one 64-bit word. An operation begins by moving head
 * (position + 1, count + 1) and ends by counting one up in tail; the one that makes the counts
 * equal is the last one under way and takes head's position over into tail: the slots before it
 * are done with. It then shows that position in the word that the program reads.
 *
 * Two lcores may do so one after the other and reach the shared word in the other order, so it is
 * only ever moved forward. A CAS that fails was beaten by another lcore, of which fewer than
 * LIMIT_LCORES can be behind us, so the tries are bounded; a program that writes the word all the
 * same harms only itself.
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

/* On a circle. */
static inline bool claim_is_behind(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* The slot at head's position is ours, if head is still *head; else *head is what it is now. */
static inline bool claim_begin(uint64_t *word, uint64_t *head)
{
	return __atomic_compare_exchange_n(
		word, head, claim_word(claim_position(*head) + 1, claim_count(*head) + 1), true,
		__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* An operation is over. True: all that began before *position are; it is to be shown. */
static inline bool claim_finish(const uint64_t *head, uint64_t *tail, uint32_t *position)
{
	uint64_t old = __atomic_load_n(tail, __ATOMIC_ACQUIRE), next, newest;

	/* release: our slot is done with; acquire: so are those that finished before */
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

/* Release: pairs with the program's acquire load; what happened to the slots before it is over. */
static inline void claim_show(uint32_t *shared, uint32_t position)
{
	uint32_t shown = __atomic_load_n(shared, __ATOMIC_RELAXED);

	for (uint32_t tries = 0; tries <= LIMIT_LCORES && claim_is_behind(shown, position); tries++)
		if (__atomic_compare_exchange_n(shared, &shown, position, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return;
}

#endif
