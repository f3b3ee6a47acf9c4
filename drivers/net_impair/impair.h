/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a bad network does to frames that pass: drop, duplicate, reorder, delay, corrupt, mark CE.
 *
 * A path is one direction of one queue. Frames are admitted, wait in the line until they are due,
 * and leave in the line's order. A reordered frame moves to the pocket and waits until a few others
 * have passed it, or for a millisecond.
 *
 *	admit -> [drop] [corrupt] [mark] [duplicate] -> line ------------> take
 *	                                                   \-> pocket -/
 *
 * Each path has one random generator: the same seed and the same frames lead to the same fate.
 */
#ifndef DRIVERS_IMPAIR_H
#define DRIVERS_IMPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define IMPAIR_LINE   4096u /* frames that wait on a path; a power of two */
#define IMPAIR_POCKET 32u

struct impair_rules {
	/* probabilities, as a threshold for 32 random bits (1.0 is 2^32) */
	uint64_t drop, duplicate, reorder, corrupt, ce;
	uint64_t delay; /* cycles */
	uint64_t patience; /* cycles that a frame stays in the pocket, at most */
	uint64_t seed;
};

/* Names of the counters, in the order of struct impair_counters. */
#define IMPAIR_COUNTERS(X) X(passed) X(dropped) X(duplicated) X(reordered) X(corrupted) X(ce_marked)

struct impair_counters {
#define X(name) uint64_t name;
	IMPAIR_COUNTERS(X)
#undef X
	uint64_t octets; /* of passed frames */
};

struct impair_waiting {
	struct rte_mbuf *frame;
	uint64_t due; /* cycles */
	uint32_t after; /* in the pocket: leaves when the line's head is there */
};

struct impair_path {
	const struct impair_rules *rules; /* NULL: no impairment in this direction */
	uint64_t random;
	uint32_t head, tail; /* free running; tail - head frames are waiting */
	uint32_t pocketed;
	struct impair_counters counters;
	struct impair_waiting pocket[IMPAIR_POCKET];
	struct impair_waiting line[IMPAIR_LINE];
};

void impair_path_init(struct impair_path *p, const struct impair_rules *rules, uint64_t salt);

/* Frees the waiting frames. */
void impair_path_clear(struct impair_path *p);

/* How many frames may be admitted now (each may become two). */
static inline uint32_t impair_room(const struct impair_path *p)
{
	return (IMPAIR_LINE - (p->tail - p->head) - p->pocketed) / 2;
}

/* Takes ownership of the frame. */
void impair_admit(struct impair_path *p, struct rte_mbuf *frame, uint64_t now);

/* Hands over at most n frames that are due. */
uint16_t impair_take(struct impair_path *p, struct rte_mbuf **frames, uint16_t n, uint64_t now);

/* Returns the last k frames of a take, which were not sent: they become the first in line. */
void impair_put_back(struct impair_path *p, struct rte_mbuf **frames, uint16_t k);

#endif
