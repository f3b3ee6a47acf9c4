/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does to frames what a bad network does: drops, duplicates, reorders, delays, corrupts, marks CE.
 * A narrow network also has a rate and a buffer in front of that rate, and marks frames that find
 * the buffer filled.
 *
 * A path is one direction of one queue. Frames are admitted, wait in the line until they are due,
 * and leave in the line's order. A reordered frame moves to the pocket and waits until a few others
 * have passed it, or for a millisecond.
 *
 *	admit -> [drop] [corrupt] [mark] [duplicate] -> [rate] -> line ------------> take
 *	                                                             \-> pocket -/
 *
 * The rate keeps no frames: it says when a frame is due. The number of octets in its buffer follows
 * from the time until the last of them is due.
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
#define IMPAIR_SHIFT  20 /* binary places of the time for an octet */

struct impair_rules {
	/* probabilities, as thresholds for 32 random bits (1.0 is 2^32) */
	uint64_t drop, duplicate, reorder, corrupt, ce;
	uint64_t delay; /* cycles */
	uint64_t rate; /* bits a second; 0: as fast as the port */
	uint64_t queue; /* octets of buffer in front of that rate */
	uint64_t ecn; /* octets in the buffer past which ECT frames are marked; UINT64_MAX: none */
	uint64_t frequency; /* cycles a second */
	uint32_t overtaken; /* frames that overtake a reordered one, at most */
	uint64_t patience; /* cycles that a frame stays in the pocket, at most */
	uint64_t seed;
};

/*
 * Probabilities, delay, rate, queue and ecn may change while frames pass (live.h). Relaxed: a path
 * sees the old value or the new one, and no other data depends on it.
 */
static inline uint64_t impair_rule(const uint64_t *rule)
{
	return __atomic_load_n(rule, __ATOMIC_RELAXED);
}

static inline void impair_rule_set(uint64_t *rule, uint64_t value)
{
	__atomic_store_n(rule, value, __ATOMIC_RELAXED);
}

/* Names of the counters, in the order of struct impair_counters. */
#define IMPAIR_COUNTERS(X)                        \
	X(passed)                                 \
	X(dropped)                                \
	X(duplicated)                             \
	X(reordered)                              \
	X(corrupted)                              \
	X(ce_marked)                              \
	X(overflowed) /* found the buffer full */ \
	X(queue_marked) /* found it filled past the threshold */

struct impair_counters {
#define X(name) uint64_t name;
	IMPAIR_COUNTERS(X)
#undef X
	uint64_t octets; /* of passed frames */
};

struct impair_waiting {
	struct rte_mbuf *frame;
	uint64_t due; /* cycles */
	uint32_t after; /* in the pocket: the frame leaves when the line's head is there */
};

struct impair_path {
	const struct impair_rules *rules; /* NULL: no impairment in this direction */
	uint64_t random;
	uint32_t paths; /* how many paths share the rules' rate, buffer and threshold */
	uint64_t rate; /* the rules' rate from which octet_cost was computed */
	uint64_t octet_cost; /* cycles of an octet, in 2^-IMPAIR_SHIFT; 0: there is no rate */
	uint64_t rate_free_at; /* cycles: when the buffer is empty */
	uint32_t head, tail; /* free running; tail - head frames are waiting */
	uint32_t pocketed;
	struct impair_counters counters;
	struct impair_waiting pocket[IMPAIR_POCKET];
	struct impair_waiting line[IMPAIR_LINE];
};

/*
 * The path is one of `paths` equal ones: rate, buffer and threshold of the rules are divided among
 * them.
 */
void impair_path_init(struct impair_path *p, const struct impair_rules *rules, uint64_t salt,
		      uint32_t paths);

/* Frees the waiting frames. */
void impair_path_clear(struct impair_path *p);

/* How many places of the line are free. */
static inline uint32_t impair_line_free(const struct impair_path *p)
{
	return IMPAIR_LINE - (p->tail - p->head) - p->pocketed;
}

/* How many frames the line has room for. Each may become two. */
static inline uint32_t impair_line_room(const struct impair_path *p)
{
	return impair_line_free(p) / 2;
}

/* How many frames may be admitted now. A buffer overflows instead of holding a sender back. */
static inline uint32_t impair_room(const struct impair_path *p)
{
	return p->octet_cost > 0 ? UINT32_MAX : impair_line_room(p);
}

/*
 * Takes ownership of the frame. The rate may have gone since the last impair_room. A frame that
 * finds no place in the line then overflows, too.
 */
void impair_admit(struct impair_path *p, struct rte_mbuf *frame, uint64_t now);

/* Hands over at most n frames that are due. */
uint16_t impair_take(struct impair_path *p, struct rte_mbuf **frames, uint16_t n, uint64_t now);

/* Puts back the last k frames of a take, which were not sent. They become the first in line. */
void impair_put_back(struct impair_path *p, struct rte_mbuf **frames, uint16_t k);

#endif
