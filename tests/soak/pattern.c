/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets, lengths and kinds of messages: functions of the lane's key and the message's number. */
#include "soak.h"

#include <string.h>

uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t x = a + b * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t random_next(struct soak *s)
{
	return mix(s->o.seed, ++s->random);
}

uint32_t random_below(struct soak *s, uint32_t n)
{
	return (uint32_t)((random_next(s) >> 32) * n >> 32);
}

/* Word `i` of a message: the words of any two messages differ, except by chance. */
static uint64_t word(uint64_t base, uint32_t i)
{
	return mix(base, i + 1);
}

void pattern_fill(void *at, uint64_t key, uint64_t number, uint32_t from, uint32_t length)
{
	uint64_t base = mix(key, number), w;
	uint8_t *to = at;

	for (uint32_t i = 0, n; i < length; i += n) {
		uint32_t within = (from + i) % 8;

		w = word(base, (from + i) / 8);
		n = length - i < 8 - within ? length - i : 8 - within;
		memcpy(to + i, (uint8_t *)&w + within, n);
	}
}

uint32_t pattern_differs(const void *at, uint64_t key, uint64_t number, uint32_t from,
			 uint32_t length)
{
	uint64_t base = mix(key, number), w;
	const uint8_t *is = at;

	for (uint32_t i = 0, n; i < length; i += n) {
		uint32_t within = (from + i) % 8;

		w = word(base, (from + i) / 8);
		n = length - i < 8 - within ? length - i : 8 - within;
		if (memcmp(is + i, (uint8_t *)&w + within, n) == 0)
			continue;
		while (is[i] == ((uint8_t *)&w)[within]) {
			i++;
			within++;
		}
		return i;
	}
	return length;
}

/* Most are short, some are several packets. */
uint32_t message_length(const struct lane *l, uint64_t key, uint64_t number)
{
	uint64_t r = mix(key ^ 1, number);
	uint32_t most = l->kind == KIND_UD ? LONGEST_UD : LONGEST;

	switch (r % 16) {
	case 0:
		return 0;
	case 1 ... 9:
		return (uint32_t)(r >> 32) % 257;
	default:
		return (uint32_t)(r >> 32) % (most + 1);
	}
}

/* Targets with an SRQ do not fix the order in which its receives are used: they get no WRITEs. */
bool message_is_written(const struct lane *l, uint64_t key, uint64_t number)
{
	return (l->kind == KIND_RC || l->kind == KIND_UC) && mix(key ^ 2, number) % 4 == 0;
}

/* Messages that can be lost carry their number; so does each message that is written. */
bool message_has_number(const struct lane *l, uint64_t key, uint64_t number)
{
	return l->kind == KIND_UC || l->kind == KIND_UD || message_is_written(l, key, number) ||
	       mix(key ^ 3, number) % 2 == 0;
}
