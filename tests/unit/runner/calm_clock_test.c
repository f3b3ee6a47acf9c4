/* SPDX-License-Identifier: BSD-3-Clause */
/* What perftest measures with tests/end_to_end/calm_clock.c is true, and does not spin. */
#include <criterion/criterion.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

enum {
	MEASUREMENTS = 200
};

static double since(const struct timeval *from, const struct timeval *to)
{
	return 1e6 * (to->tv_sec - from->tv_sec) + (to->tv_usec - from->tv_usec);
}

/* Stands for the processor's counter. */
static double counter(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e9 * now.tv_sec + now.tv_nsec;
}

/* How often this thread has slept. */
static long sleeps(void)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	return used.ru_nvcsw;
}

/* Measurement number i, as perftest makes it. */
static void measure(int i, double *us, double *ticks)
{
	double start = counter();
	struct timeval from, to;

	gettimeofday(&from, NULL);
	do
		gettimeofday(&to, NULL);
	while (since(&from, &to) < 100 + 10 * i);
	*us = since(&from, &to);
	*ticks = counter() - start;
}

/* The least of all measurements counts: another program may delay a measurement between its two clocks. */
Test(calm_clock, what_is_measured_is_true_and_sleeps)
{
	double us, ticks, rate = INFINITY;
	long before = sleeps();

	for (int i = 0; i < MEASUREMENTS; i++) {
		measure(i, &us, &ticks);
		rate = fmin(rate, ticks / us);
	}
	cr_expect(fabs(rate - 1000) < 20, "%.3f ns in a microsecond", rate);
	cr_expect(sleeps() - before >= MEASUREMENTS / 2, "%ld sleeps", sleeps() - before);
}

/* A program that takes the time of something looks from two places. */
Test(calm_clock, one_look_does_not_sleep)
{
	struct timeval first, second;
	long before;

	gettimeofday(&first, NULL);
	before = sleeps();
	gettimeofday(&second, NULL);
	cr_expect(sleeps() == before, "%ld sleeps", sleeps() - before);
	cr_expect(since(&first, &second) >= 0);
}
