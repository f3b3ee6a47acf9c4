/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/psn_set.h"

/* What the word with `psn` would gain. */
static uint64_t missing(struct psn_set to, uint32_t psn, const struct psn_set except[],
			uint32_t excepts)
{
	uint64_t there = *psn_set_word(to, psn);

	for (uint32_t e = 0; e < excepts; e++)
		there |= *psn_set_word(except[e], psn);
	return ~there;
}

bool psn_set_fill(struct psn_set to, uint32_t from, uint32_t count, const struct psn_set except[],
		  uint32_t excepts)
{
	uint64_t mask, any = 0;

	assert(count <= psn_set_window(to));
	while (count > 0) {
		uint32_t n = psn_range_word(from, count, &mask);

		mask &= missing(to, from, except, excepts);
		any |= mask;
		*psn_set_word(to, from) |= mask;
		from = psn_add(from, n);
		count -= n;
	}
	return any != 0;
}

bool psn_set_would_fill(struct psn_set to, uint32_t from, uint32_t count,
			const struct psn_set except[], uint32_t excepts)
{
	uint64_t mask, any = 0;

	assert(count <= psn_set_window(to));
	while (count > 0 && any == 0) {
		uint32_t n = psn_range_word(from, count, &mask);

		any = mask & missing(to, from, except, excepts);
		from = psn_add(from, n);
		count -= n;
	}
	return any != 0;
}

bool psn_set_move(struct psn_set to, struct psn_set source, uint32_t from, uint32_t count,
		  struct psn_set except)
{
	uint64_t mask, any = 0;

	assert(count <= psn_set_window(to));
	while (count > 0) {
		uint32_t n = psn_range_word(from, count, &mask);

		mask &= *psn_set_word(source, from) & ~*psn_set_word(except, from);
		any |= mask;
		*psn_set_word(to, from) |= mask;
		*psn_set_word(source, from) &= ~mask;
		from = psn_add(from, n);
		count -= n;
	}
	return any != 0;
}

bool psn_set_would_move(struct psn_set source, uint32_t from, uint32_t count, struct psn_set except)
{
	uint64_t mask, any = 0;

	assert(count <= psn_set_window(source));
	while (count > 0 && any == 0) {
		uint32_t n = psn_range_word(from, count, &mask);

		any = mask & *psn_set_word(source, from) & ~*psn_set_word(except, from);
		from = psn_add(from, n);
		count -= n;
	}
	return any != 0;
}

void psn_set_clear(struct psn_set s, uint32_t from, uint32_t count)
{
	uint64_t mask;

	count = MIN_OF(count, psn_set_window(s));
	while (count > 0) {
		uint32_t n = psn_range_word(from, count, &mask);

		*psn_set_word(s, from) &= ~mask;
		from = psn_add(from, n);
		count -= n;
	}
}

static uint32_t first(struct psn_set s, uint32_t from, uint32_t count, uint64_t flip)
{
	uint64_t mask;
	uint32_t done = 0;

	assert(count <= psn_set_window(s));
	while (done < count) {
		uint32_t psn = psn_add(from, done);
		uint32_t n = psn_range_word(psn, count - done, &mask);
		uint64_t found = (*psn_set_word(s, psn) ^ flip) & mask;

		if (found != 0)
			return done + (uint32_t)__builtin_ctzll(found) - psn % 64;
		done += n;
	}
	return count;
}

uint32_t psn_set_first(struct psn_set s, uint32_t from, uint32_t count)
{
	return first(s, from, count, 0);
}

uint32_t psn_set_gap(struct psn_set s, uint32_t from, uint32_t count)
{
	return first(s, from, count, UINT64_MAX);
}
