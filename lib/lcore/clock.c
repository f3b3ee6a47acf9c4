/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nanoseconds of CLOCK_MONOTONIC, from the TSC: a reading costs a few ns, and every lcore reads it
 * once a poll. ns = base_ns + (tsc - base_tsc) * mult / 2^32, anchored when the process starts.
 */
#include <time.h>

#include <rte_cycles.h>

#include "lcore/inside.h"

static uint64_t base_tsc;
static uint64_t base_ns;
static uint64_t mult;

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * TIME_S + (uint64_t)ts.tv_nsec;
}

static void __attribute__((constructor)) clock_anchor(void)
{
	base_tsc = rte_rdtsc();
	base_ns = monotonic_ns();
}

void clock_init(void)
{
	if (mult == 0)
		mult = (uint64_t)(((unsigned __int128)TIME_S << 32) / rte_get_tsc_hz());
}

nanotime clock_now(void)
{
	return base_ns + (uint64_t)(((unsigned __int128)(rte_rdtsc() - base_tsc) * mult) >> 32);
}

/* Written once, before the client sees the page; the TSC is the same on every core. */
void clock_publish(struct client_page *page)
{
	page->clock.tsc = base_tsc;
	page->clock.ns = base_ns;
	page->clock.mult = mult;
}
