/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/offer.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "config/limits.h"
#include "queue/cancel.h"

/* An lcore that is awake, and ran last on the processor that we have now, does not run. */
static bool lcore_waits_here(const struct client_page *page, uint32_t lcores)
{
	uint32_t here = (uint32_t)sched_getcpu() + 1;

	if (here == 0)
		return false;
	for (uint32_t i = 0; i < lcores; i++) {
		const struct lcore_page *l = &page->lcore[i];

		if (__atomic_load_n(&l->processor, __ATOMIC_RELAXED) == here &&
		    !__atomic_load_n(&l->sleeping, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/*
 * Each switch away from a thread that could run on counts, so an unchanged count says that the yield
 * gave the processor to nobody. If the count changed by preemption, the next yield tells.
 */
static bool yield_in_vain(void)
{
	static __thread long before;
	struct rusage usage = { 0 }; /* some sandboxes refuse the call */
	bool in_vain;

	sched_yield();
	getrusage(RUSAGE_THREAD, &usage);
	in_vain = usage.ru_nivcsw == before;
	before = usage.ru_nivcsw;
	return in_vain;
}

/* The kernel adds the thread's timer slack, which is 50 us by default. */
static void sleep_a_moment(void)
{
	struct timespec moment = { .tv_nsec = LIMIT_OFFER_NS };
	int cancel = cancel_off(); /* the thread that polls holds the lock of its CQ */

	clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
	cancel_restore(cancel);
}

void offer_core(const struct client_page *page, uint32_t lcores, bool crowded)
{
	if (lcore_waits_here(page, lcores)) {
		if (yield_in_vain())
			sleep_a_moment();
	} else if (crowded) {
		sched_yield();
	}
}
