/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's clock, read here: nanoseconds by the TSC, with the constants that the engine shows
 * in the client page. It keeps pace with the TSC, not with CLOCK_MONOTONIC (which NTP slews), so
 * that times of completions and ibv_query_rt_values_ex are of one clock.
 */
#include <errno.h>
#include <time.h>

#include "base/time.h"
#include "verbs/cq.h"

static uint64_t engine_clock(const struct clock_page *p)
{
	uint64_t ticks = __builtin_ia32_rdtsc() - p->tsc;

	return p->ns + (uint64_t)(((unsigned __int128)ticks * p->mult) >> 32);
}

uint64_t clock_to_wall(const struct client *c)
{
	struct timespec t;
	uint64_t engine;

	clock_gettime(CLOCK_REALTIME, &t);
	engine = engine_clock(&c->carrier->page->clock);
	return (uint64_t)t.tv_sec * TIME_S + (uint64_t)t.tv_nsec - engine;
}

/* As other devices answer: all of it in tv_nsec, in units of hca_core_clock. */
int verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct client *c = client_of(context);

	if (values == NULL || (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK))
		return EINVAL;
	if (client_gone(c))
		return ENODEV;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)engine_clock(&c->carrier->page->clock);
	}
	return 0;
}
