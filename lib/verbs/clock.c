/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the engine's clock in this process: nanoseconds from the TSC, with the constants in the
 * client page. Timestamps of completions and ibv_query_rt_values_ex(3) use this one clock. It
 * follows the TSC and not CLOCK_MONOTONIC, which NTP slews.
 */
#include <errno.h>
#include <time.h>

#include "base/time.h"
#include "verbs/queues/cq.h"

static uint64_t engine_clock(const struct clock_page *p)
{
	uint64_t ticks = __builtin_ia32_rdtsc() - p->tsc;

	return p->ns + (uint64_t)(((unsigned __int128)ticks * p->mult) >> 32);
}

/*
 * The two clocks are read one after the other. If that took longer than MOMENT, they are read
 * again.
 */
#define READINGS 4u
#define MOMENT	 (2 * TIME_US)

uint64_t clock_to_wall(const struct attachment *c)
{
	const struct clock_page *p = &c->carrier->page->clock;
	uint64_t best = UINT64_MAX, wall = 0;

	for (uint32_t i = 0; i < READINGS && best > MOMENT; i++) {
		uint64_t before = engine_clock(p), after;
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		after = engine_clock(p);
		if (after - before >= best)
			continue;
		best = after - before;
		wall = (uint64_t)t.tv_sec * TIME_S + (uint64_t)t.tv_nsec - before - best / 2;
	}
	return wall;
}

/* As other devices do, puts the whole value into tv_nsec, in units of hca_core_clock. */
int verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct attachment *c = attachment_of(context);

	if (values == NULL || (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK))
		return EINVAL;
	if (attachment_gone(c))
		return ENODEV;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)engine_clock(&c->carrier->page->clock);
	}
	return 0;
}
