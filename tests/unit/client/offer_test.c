/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that polls in vain yields to others, and sleeps for an lcore that waits for its processor. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "client/offer.h"

#define HERE   3
#define LCORES 2

static struct client_page page;
static uint32_t yields, sleeps;
static int processor;
static int cancel_state; /* while it slept */
static bool is_alone; /* in its group of the scheduler */
static long switches;

int __wrap_sched_getcpu(void);
int __wrap_sched_yield(void);
int __wrap_getrusage(__rusage_who_t who, struct rusage *usage);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
			   struct timespec *left);

int __wrap_sched_getcpu(void)
{
	return processor;
}

int __wrap_sched_yield(void)
{
	yields++;
	switches += !is_alone;
	return 0;
}

int __wrap_getrusage(__rusage_who_t who, struct rusage *usage)
{
	cr_expect_eq(who, RUSAGE_THREAD);
	*usage = (struct rusage){ .ru_nivcsw = switches };
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
			   struct timespec *left)
{
	cr_expect_eq(t->tv_sec, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	sleeps++;
	return EINTR; /* a signal: the caller polls again anyway */
}

static void begin(void)
{
	page = (struct client_page){ 0 };
	processor = HERE;
	is_alone = true;
	yields = sleeps = 0;
}

TestSuite(offer, .init = begin, .timeout = 60);

static void expect(bool crowded, uint32_t of_yields, uint32_t of_sleeps)
{
	yields = sleeps = 0;
	offer_core(&page, LCORES, crowded);
	cr_expect_eq(yields, of_yields, "%u yields", yields);
	cr_expect_eq(sleeps, of_sleeps, "%u sleeps", sleeps);
}

Test(offer, an_lcore_that_ran_here_last_is_slept_for)
{
	for (uint32_t i = 0; i < LCORES; i++) {
		begin();
		page.lcore[i].processor = HERE + 1;
		expect(true, 1, 1);
		expect(false, 1, 1);
	}
}

Test(offer, an_lcore_that_a_yield_may_let_run_is_not_slept_for)
{
	page.lcore[0].processor = HERE + 1;
	is_alone = false;
	for (uint32_t i = 0; i < 3; i++)
		expect(true, 1, 0);
	is_alone = true;
	expect(true, 1, 1);
}

Test(offer, an_lcore_that_sleeps_needs_no_processor)
{
	page.lcore[1].processor = HERE + 1;
	page.lcore[1].sleeping = 1;
	expect(true, 1, 0);
	expect(false, 0, 0);
}

Test(offer, an_lcore_elsewhere_is_not_slept_for)
{
	page.lcore[0].processor = HERE;
	page.lcore[1].processor = HERE + 2;
	page.lcore[LCORES].processor = HERE + 1; /* there is no such lcore */
	expect(true, 1, 0);
	expect(false, 0, 0);
}

/* Engines that do not say where they run, and kernels that do not. */
Test(offer, an_unknown_processor_is_none)
{
	processor = 0;
	expect(true, 1, 0);
	processor = -1;
	expect(true, 1, 0);
}

Test(offer, the_sleeping_thread_cannot_be_cancelled)
{
	int state;

	page.lcore[0].processor = HERE + 1;
	expect(true, 1, 1);
	cr_expect_eq(cancel_state, PTHREAD_CANCEL_DISABLE, "it may be cancelled in its sleep");
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	cr_expect_eq(state, PTHREAD_CANCEL_ENABLE, "it may not be cancelled afterwards");
}
