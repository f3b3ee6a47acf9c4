/* SPDX-License-Identifier: BSD-3-Clause */
/* The time slice of a thread, on this kernel and on others, and yields that take long. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "config/limits.h"
#include "lcore/idle/urgency.h"

TestSuite(urgency, .timeout = 60);

#define SLICE (LIMIT_SLICE_US * 1000u)
#define OWN   1400000u
#define NICE  19 /* every user may take it, whatever the test was started with */

/* A kernel in which a thread has these attributes; not in use: the calls go to this machine's. */
static struct {
	bool in_use, refuses, has_slices;
	struct sched_attr of_thread;
	uint32_t sets;
} kernel;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static long made_up_kernel(long number, struct sched_attr *a)
{
	if (number == SYS_sched_getattr) {
		*a = kernel.of_thread;
		return 0;
	}
	cr_assert_eq(number, SYS_sched_setattr);
	kernel.sets++;
	if (kernel.refuses) {
		errno = EPERM;
		return -1;
	}
	kernel.of_thread = *a;
	if (!kernel.has_slices)
		kernel.of_thread.sched_runtime = 0;
	else if (a->sched_runtime == 0)
		kernel.of_thread.sched_runtime = OWN;
	return 0;
}

long __wrap_syscall(long number, ...)
{
	long argument[4];
	va_list list;

	va_start(list, number);
	for (size_t i = 0; i < ARRAY_SIZE(argument); i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (kernel.in_use)
		return made_up_kernel(number, (struct sched_attr *)argument[1]);
	return __real_syscall(number, argument[0], argument[1], argument[2], argument[3]);
}

static void make_up(bool has_slices, uint32_t policy)
{
	kernel.in_use = true;
	kernel.has_slices = has_slices;
	kernel.of_thread = (struct sched_attr){ .size = sizeof(struct sched_attr),
						.sched_policy = policy,
						.sched_nice = 3,
						.sched_flags = 1,
						.sched_runtime = has_slices ? OWN : 0 };
}

Test(urgency, a_short_slice_until_it_is_left)
{
	make_up(true, SCHED_NORMAL);
	cr_assert_eq(urgency_take(), URGENCY_SLICE);
	cr_expect_eq(kernel.of_thread.sched_runtime, SLICE);
	cr_expect_eq(kernel.of_thread.sched_nice, 3);
	cr_expect_eq(kernel.of_thread.sched_flags, 1);
	urgency_leave(URGENCY_SLICE);
	cr_expect_eq(kernel.of_thread.sched_runtime, OWN);
	cr_expect_eq(kernel.of_thread.sched_nice, 3);
	cr_expect_eq(kernel.sets, 2);
}

Test(urgency, a_kernel_without_slices)
{
	make_up(false, SCHED_NORMAL);
	cr_assert_eq(urgency_take(), URGENCY_UNKNOWN);
	urgency_leave(URGENCY_UNKNOWN);
	cr_expect_eq(kernel.sets, 1);
}

Test(urgency, a_kernel_that_refuses)
{
	make_up(true, SCHED_NORMAL);
	kernel.refuses = true;
	cr_expect_eq(urgency_take(), URGENCY_REFUSED);
	cr_expect_eq(kernel.of_thread.sched_runtime, OWN);
}

Test(urgency, a_policy_of_the_users_choice_stays)
{
	static const uint32_t policies[] = { SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE };

	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		make_up(true, policies[i]);
		cr_expect_eq(urgency_take(), URGENCY_OTHER_POLICY);
		urgency_leave(URGENCY_OTHER_POLICY);
	}
	cr_expect_eq(kernel.sets, 0);
}

/* As a user without privileges, on the kernel of this machine. */
Test(urgency, this_machine)
{
	struct sched_attr a = { .size = sizeof(a) };
	enum urgency u;

	if (geteuid() == 0)
		cr_assert_eq(setresuid(65534, 65534, 65534), 0);
	cr_assert_eq(setpriority(PRIO_PROCESS, 0, NICE), 0);
	u = urgency_take();
	cr_assert(u == URGENCY_SLICE || u == URGENCY_UNKNOWN, "%s", urgency_name(u));
	cr_assert_eq(syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0), 0);
	cr_expect_eq(a.sched_runtime == SLICE, u == URGENCY_SLICE);
	cr_expect_eq(a.sched_policy, SCHED_NORMAL);
	cr_expect_eq(a.sched_nice, NICE);
	urgency_leave(u);
	cr_assert_eq(syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0), 0);
	cr_expect_neq(a.sched_runtime, SLICE);
	cr_expect_eq(a.sched_nice, NICE);
}

#define LATE (LIMIT_YIELD_LATE_US * TIME_US)

/* Yields that took so long, and whether the lcore sleeps instead after each. */
static const struct {
	nanotime took;
	bool crowd;
} yields[] = {
	{ 0, false },	 { LATE, false }, { LATE - 1, false },	 { LATE, false },   { LATE, true },
	{ 5000, false }, { LATE, false }, { 3 * TIME_MS, true }, { TIME_MS, true },
};

Test(urgency, yields_that_take_long_in_turn_are_a_crowd)
{
	nanotime now = 1000 * TIME_MS;
	struct crowd c = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(yields); i++) {
		/* what was found before is over */
		now += LIMIT_CROWD_MS * TIME_MS;
		cr_expect_not(crowd_is_there(&c, now + yields[i].took), "yield %zu: it ends", i);
		crowd_yielded(&c, now, now + yields[i].took);
		now += yields[i].took;
		cr_expect_eq(crowd_is_there(&c, now), yields[i].crowd, "yield %zu", i);
		cr_expect_eq(crowd_is_there(&c, now + LIMIT_CROWD_MS * TIME_MS - 1),
			     yields[i].crowd, "yield %zu: it lasts", i);
	}
}

/* What one late yield leaves of the shorter time is too little for a second one. */
Test(urgency, a_late_yield_is_followed_by_another_one)
{
	struct crowd c = { 0 };

	cr_expect_eq(crowd_yields_for(&c, false), LIMIT_YIELD_US * TIME_US);
	cr_expect_eq(crowd_yields_for(&c, true), LIMIT_YIELD_LONGER_US * TIME_US);
	crowd_yielded(&c, TIME_MS, TIME_MS + LATE);
	cr_expect_gt(crowd_yields_for(&c, false), LATE);
	crowd_yielded(&c, 2 * TIME_MS, 2 * TIME_MS + 1);
	cr_expect_eq(crowd_yields_for(&c, false), LIMIT_YIELD_US * TIME_US, "it was in time");
}
