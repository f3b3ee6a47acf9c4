/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many octets are summed by four states of several lanes, because a multiplication takes some cycles and the next one can
 * begin meanwhile. fold_256.c and fold_512.c include this with a vector of two and of four lanes; a lane is
 * a state (state.h).
 *
 *     octets    | part 0    | part 1    | part 2    | part 3    | part 0    | ...
 *     lanes     | 0  1 .. n | 0  1 .. n |                       ^ a step further
 *
 * Each step moves all four parts over the octets of a step. In the end, parts and then lanes move over those that follow
 * them, and are added: one state is left. What is shorter than a step follows in vectors, states and octets.
 *
 * They define: vector; WIDTH, its octets; TARGET; BY(n), what n octets are multiplied by, for WIDTH and 2, 3 and 4 times as many;
 * and vector_*() below.
 */
#define PARTS  4u
#define STEP   (PARTS * WIDTH)
#define INLINE static inline TARGET __attribute__((always_inline))

/* Loads, and stores at `to` unless it is NULL. */
INLINE vector vector_take(uint8_t *to, const uint8_t *from);
/* The state times `by`, which moves each lane over as many octets, and `next` added. */
INLINE vector vector_over(vector state, vector by, vector next);
/* Adds a state to the first lane. */
INLINE vector vector_add_first(vector v, __m128i state);
/* All lanes but the last move over those behind them, and all are added. */
INLINE __m128i vector_state(vector v);

INLINE __m128i state_take(uint8_t *to, const uint8_t *from)
{
	__m128i octets = state_load(from);

	if (to != NULL)
		_mm_storeu_si128((__m128i *)to, octets);
	return octets;
}

/* At most WIDTH - 1 octets are left, and at least 16 precede them. */
INLINE __m128i fold_rest(__m128i state, uint8_t *to, const uint8_t *from, size_t left)
{
	for (; left >= STATE_OCTETS; left -= STATE_OCTETS, from += STATE_OCTETS) {
		state = state_over(state, STATE_OCTETS, state_take(to, from));
		if (to != NULL)
			to += STATE_OCTETS;
	}
	if (left == 0)
		return state;
	if (to != NULL) /* together with octets that are there */
		_mm_storeu_si128((__m128i *)(to + left - STATE_OCTETS),
				 state_load(from + left - STATE_OCTETS));
	return state_over_last(state, left, from + left);
}

/* `first` is added to the first 16 octets. `to`: where the octets are copied, or NULL as a constant at compile time. */
INLINE uint32_t fold(__m128i first, uint8_t *to, const uint8_t *from, size_t n)
{
	vector part[PARTS], whole;
	size_t at;

	for (uint32_t i = 0; i < PARTS; i++)
		part[i] = vector_take(to != NULL ? to + WIDTH * i : NULL, from + WIDTH * i);
	part[0] = vector_add_first(part[0], first);
	for (at = STEP; n - at >= STEP; at += STEP)
		for (uint32_t i = 0; i < PARTS; i++)
			part[i] = vector_over(part[i], BY(4),
					      vector_take(to != NULL ? to + at + WIDTH * i : NULL,
							  from + at + WIDTH * i));
	whole = vector_over(part[2], BY(1), part[3]);
	whole = vector_over(part[1], BY(2), whole);
	whole = vector_over(part[0], BY(3), whole);
	for (; n - at >= WIDTH; at += WIDTH)
		whole = vector_over(whole, BY(1),
				    vector_take(to != NULL ? to + at : NULL, from + at));
	return state_sum(
		fold_rest(vector_state(whole), to != NULL ? to + at : NULL, from + at, n - at));
}
