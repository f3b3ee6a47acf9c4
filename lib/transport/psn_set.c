/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/psn_set.h"

bool psn_set_fill(struct psn_set *to, uint32_t from, uint32_t count,
		  const struct psn_set *const except[], uint32_t excepts)
{
	uint64_t mask, any = 0;

	assert(count <= LIMIT_WINDOW);
	while (count > 0) {
		uint32_t i = from % LIMIT_WINDOW / 64, n = psn_range_word(from, count, &mask);

		for (uint32_t e = 0; e < excepts; e++)
			mask &= ~except[e]->word[i];
		any |= mask & ~to->word[i];
		to->word[i] |= mask;
		from = psn_add(from, n);
		count -= n;
	}
	return any != 0;
}

bool psn_set_move(struct psn_set *to, struct psn_set *source, uint32_t from, uint32_t count,
		  const struct psn_set *except)
{
	uint64_t mask, any = 0;

	assert(count <= LIMIT_WINDOW);
	while (count > 0) {
		uint32_t i = from % LIMIT_WINDOW / 64, n = psn_range_word(from, count, &mask);

		mask &= source->word[i] & ~except->word[i];
		any |= mask;
		to->word[i] |= mask;
		source->word[i] &= ~mask;
		from = psn_add(from, n);
		count -= n;
	}
	return any != 0;
}

void psn_set_clear(struct psn_set *s, uint32_t from, uint32_t count)
{
	uint64_t mask;

	count = MIN_OF(count, LIMIT_WINDOW);
	while (count > 0) {
		uint32_t n = psn_range_word(from, count, &mask);

		s->word[from % LIMIT_WINDOW / 64] &= ~mask;
		from = psn_add(from, n);
		count -= n;
	}
}

static uint32_t first(const struct psn_set *s, uint32_t from, uint32_t count, uint64_t flip)
{
	uint64_t mask;
	uint32_t done = 0;

	assert(count <= LIMIT_WINDOW);
	while (done < count) {
		uint32_t psn = psn_add(from, done);
		uint32_t n = psn_range_word(psn, count - done, &mask);
		uint64_t found = (s->word[psn % LIMIT_WINDOW / 64] ^ flip) & mask;

		if (found != 0)
			return done + (uint32_t)__builtin_ctzll(found) - psn % 64;
		done += n;
	}
	return count;
}

uint32_t psn_set_first(const struct psn_set *s, uint32_t from, uint32_t count)
{
	return first(s, from, count, 0);
}

uint32_t psn_set_gap(const struct psn_set *s, uint32_t from, uint32_t count)
{
	return first(s, from, count, UINT64_MAX);
}
