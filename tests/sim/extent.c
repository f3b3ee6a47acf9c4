/* SPDX-License-Identifier: BSD-3-Clause */
#include "extent.h"

#include "base/bits.h"

uint8_t *memory_of(const struct node_qp *q, uint32_t offset)
{
	return q->node->memory + offset;
}

void pattern_make(uint8_t *to, uint32_t length, uint64_t seed)
{
	for (uint32_t i = 0; i < length; i += 8) {
		uint64_t v = (seed += UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd1342543de82ef95);

		memcpy(to + i, &v, MIN_OF(8u, length - i));
	}
}

static bool all_guard(const uint8_t *p, size_t length)
{
	return length == 0 || (p[0] == GUARD && memcmp(p, p + 1, length - 1) == 0);
}

void extent_fill(const struct node_qp *q, const struct extent *e, const uint8_t *from)
{
	for (uint32_t i = 0; i < e->pieces; i++) {
		memcpy(memory_of(q, e->at + e->offset[i]), from, e->length[i]);
		from += e->length[i];
	}
}

bool extent_equals(const struct node_qp *q, const struct extent *e, const uint8_t *wanted,
		   uint32_t length)
{
	for (uint32_t i = 0; i < e->pieces && length > 0; i++) {
		uint32_t n = MIN_OF(e->length[i], length);

		if (memcmp(memory_of(q, e->at + e->offset[i]), wanted, n) != 0)
			return false;
		wanted += n;
		length -= n;
	}
	return true;
}

bool extent_release(const struct node_qp *q, const struct extent *e)
{
	for (uint32_t i = 0; i < e->pieces; i++)
		memset(memory_of(q, e->at + e->offset[i]), GUARD, e->length[i]);
	return all_guard(memory_of(q, e->at), e->used);
}

void extent_cut(struct prng *r, struct extent *e, uint32_t at, uint32_t length, uint32_t most)
{
	uint32_t pieces = prng_chance(r, 0.6) ? 1 : prng_between(r, 1, most), rest = length;
	uint32_t offset = GUARD_OCTETS + prng_below(r, 8);

	e->at = at;
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t n = i + 1 == pieces ? rest : prng_below(r, 2 * (rest / pieces) + 2);

		n = MIN_OF(n, rest);
		e->offset[i] = offset;
		e->length[i] = n;
		offset += n + prng_below(r, 5);
		rest -= n;
	}
	e->pieces = pieces;
	e->used = offset + GUARD_OCTETS;
}

uint32_t extent_elements(const struct extent *e, uint64_t base, uint32_t key, struct work_sge *sge)
{
	for (uint32_t i = 0; i < e->pieces; i++)
		sge[i] = (struct work_sge){ .addr = base + e->at + e->offset[i],
					    .length = e->length[i],
					    .lkey = key };
	return e->pieces;
}
