/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "transport/requester/rate.h"

/* Sends packets of one size until `end`, each as soon as it may leave. Returns their octets. */
static uint64_t octets_in(struct rate *r, uint32_t packet, nanotime *now, nanotime end,
			  nanotime late)
{
	uint64_t octets = 0;

	while (*now < end) {
		nanotime at = rate_ready_at(r, *now);

		if (at > *now) {
			*now = at + late;
			continue;
		}
		rate_used(r, packet, *now);
		octets += packet;
	}
	return octets;
}

Test(rate, is_kept_also_where_the_clock_ticks_late)
{
	static const struct {
		uint32_t kilobits, packet;
		nanotime late;
	} rows[] = {
		{ 1000, 1500, 0 },	  { 100000, 1500, 0 },	     { 100000, 64, 20000 },
		{ 1000000, 4200, 20000 }, { 10000000, 4200, 20000 }, { 40000000, 1100, 20000 },
		{ 100000000, 4200, 0 },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rate r = { 0 };
		nanotime now = 5 * TIME_S, end = now + TIME_S;
		uint64_t wanted = UINT64_C(125) * rows[i].kilobits, octets;

		rate_set(&r, rows[i].kilobits, 4200);
		octets = octets_in(&r, rows[i].packet, &now, end, rows[i].late);
		cr_assert(octets >= wanted / 100 * 98 && octets <= wanted / 100 * 101 + 4 * 4200,
			  "row %u: %lu octets in a second, not %lu", i, octets, wanted);
	}
}

Test(rate, a_burst_is_small_and_idle_time_is_not_saved)
{
	struct rate r = { 0 };
	nanotime now = TIME_S;

	rate_set(&r, 8000, 1500);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t packets = 0;

		for (; rate_ready_at(&r, now) <= now; packets++)
			rate_used(&r, 1500, now);
		cr_assert_eq(packets, 3);
		now += TIME_S;
	}
}

Test(rate, no_limit_is_no_wait)
{
	struct rate r = { 0 };

	for (uint32_t i = 0; i < 1000; i++) {
		cr_assert_eq(rate_ready_at(&r, 7), 7);
		rate_used(&r, UINT32_MAX, 7);
	}
	rate_set(&r, 1, 4200);
	rate_used(&r, 100000, 7);
	cr_assert_gt(rate_ready_at(&r, 7), 7);
	rate_set(&r, 1, 4200);
	cr_assert_gt(rate_ready_at(&r, 7), 7, "the same limit again does not forget");
	rate_set(&r, 0, 4200);
	cr_assert_eq(rate_ready_at(&r, 7), 7);
}
