/* SPDX-License-Identifier: BSD-3-Clause */
#include "histogram.h"

#include <math.h>
#include <string.h>

void histogram_init(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

/*
 * Below 2 * STEPS each value has its own slot. Above, the low `shift` bits are dropped, so that
 * STEP_BITS + 1 bits remain, of which the top one is set.
 */
static uint32_t slot_of(uint64_t value)
{
	uint32_t shift;

	if (value >= UINT64_C(1) << HISTOGRAM_MAX_BITS)
		return HISTOGRAM_SLOTS - 1;
	if (value < 2 * HISTOGRAM_STEPS)
		return (uint32_t)value;
	shift = 63u - (uint32_t)__builtin_clzll(value) - HISTOGRAM_STEP_BITS;
	return shift * HISTOGRAM_STEPS + (uint32_t)(value >> shift);
}

/* The largest value in a slot. */
static uint64_t slot_end(uint32_t slot)
{
	uint32_t shift;

	if (slot < 2 * HISTOGRAM_STEPS)
		return slot;
	shift = slot / HISTOGRAM_STEPS - 1;
	return (((uint64_t)slot - shift * HISTOGRAM_STEPS + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	h->count++;
	h->slot[slot_of(value)]++;
	if (value > h->max)
		h->max = value;
	if (value < h->min)
		h->min = value;
}

uint64_t histogram_percentile(const struct histogram *h, double percent)
{
	uint64_t rank = (uint64_t)ceil((double)h->count * percent / 100.0), seen = 0;

	if (rank == 0)
		rank = 1;
	for (uint32_t i = 0; i < HISTOGRAM_SLOTS; i++) {
		seen += h->slot[i];
		if (seen >= rank)
			return slot_end(i) < h->max ? slot_end(i) : h->max;
	}
	return h->max;
}
