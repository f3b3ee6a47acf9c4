/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of PSNs that lie within a window of each other: one bit each, at the PSN modulo the window.
 * The set's owner has the bits, knows where the PSNs begin, and removes PSNs that leave the window.
 */
#ifndef TRANSPORT_PSN_SET_H
#define TRANSPORT_PSN_SET_H

#include <assert.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/psn.h"

#define PSN_SET_WORDS (LIMIT_WINDOW / 64) /* of a set for an ordinary window */

static_assert(LIMIT_WINDOW % 64 == 0 && ((PSN_MASK + 1) % LIMIT_WINDOW_MOST) == 0 &&
		      (LIMIT_WINDOW_MOST & (LIMIT_WINDOW_MOST - 1)) == 0,
	      "places go round with the PSNs");

/* It is passed by value: the bits are elsewhere. */
struct psn_set {
	uint64_t *word;
	uint32_t words; /* a power of two */
};

static inline uint32_t psn_set_window(struct psn_set s)
{
	return 64 * s.words;
}

/* The word with the bit of this PSN. */
static inline uint64_t *psn_set_word(struct psn_set s, uint32_t psn)
{
	return &s.word[psn / 64 & (s.words - 1)];
}

static inline bool psn_set_has(struct psn_set s, uint32_t psn)
{
	return *psn_set_word(s, psn) >> (psn % 64) & 1;
}

static inline void psn_set_add(struct psn_set s, uint32_t psn)
{
	*psn_set_word(s, psn) |= UINT64_C(1) << (psn % 64);
}

static inline void psn_set_remove(struct psn_set s, uint32_t psn)
{
	*psn_set_word(s, psn) &= ~(UINT64_C(1) << (psn % 64));
}

/* How many bits are set. */
static inline uint32_t bits_in(uint64_t v)
{
	v -= v >> 1 & UINT64_C(0x5555555555555555);
	v = (v & UINT64_C(0x3333333333333333)) + (v >> 2 & UINT64_C(0x3333333333333333));
	v = (v + (v >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t)(v * UINT64_C(0x0101010101010101) >> 56);
}

/* 64 PSNs from this one on: bit n says whether `from` + n is in the set. */
static inline uint64_t psn_set_bits(struct psn_set s, uint32_t from)
{
	uint64_t low = *psn_set_word(s, from) >> (from % 64);

	return from % 64 == 0 ? low : low | *psn_set_word(s, psn_add(from, 64)) << (64 - from % 64);
}

/*
 * Walks a range of PSNs, at most a window, a word at a time: `mask` says which bits of the word
 * that holds `psn` are in the range. Returns their number, which leads to the next word.
 */
static inline uint32_t psn_range_word(uint32_t psn, uint32_t count, uint64_t *mask)
{
	uint32_t bit = psn % 64, n = MIN_OF(count, 64 - bit);

	*mask = (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1) << bit;
	return n;
}

/* All sets in one call have the same window. */

/* Adds to `to` all of [from, from + count) that are in none of these sets. True: there were some.
 */
bool psn_set_fill(struct psn_set to, uint32_t from, uint32_t count, const struct psn_set except[],
		  uint32_t excepts);
/* ... would there be some? */
bool psn_set_would_fill(struct psn_set to, uint32_t from, uint32_t count,
			const struct psn_set except[], uint32_t excepts);
/*
 * Moves those of [from, from + count) that are in `source` to `to`, except those in `except`. True:
 * there were some.
 */
bool psn_set_move(struct psn_set to, struct psn_set source, uint32_t from, uint32_t count,
		  struct psn_set except);
/* ... would there be some? */
bool psn_set_would_move(struct psn_set source, uint32_t from, uint32_t count,
			struct psn_set except);
/* Removes [from, from + count) from the set. */
void psn_set_clear(struct psn_set s, uint32_t from, uint32_t count);
/* How far behind `from` the first PSN of the set is; `count`: none of [from, from + count) is. */
uint32_t psn_set_first(struct psn_set s, uint32_t from, uint32_t count);
/* ... the first that is not in it. */
uint32_t psn_set_gap(struct psn_set s, uint32_t from, uint32_t count);

#endif
