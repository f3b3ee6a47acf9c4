/* SPDX-License-Identifier: BSD-3-Clause */
/* How long the commands of one user may wait while others wait behind them. */
#include <criterion/criterion.h>

#include "config/limits.h"
#include "control/share/patience.h"
#include "lcore/lcore.h"

/* 60 programs of one user, each with a command that waits as long as it may, in each second. */
Test(patience, waits_of_one_user_are_a_tenth_of_the_time)
{
	struct patience p = { 0 };
	nanotime now = 5 * TIME_S, waited = 0, end = now + 10 * TIME_S;

	cr_assert_eq(patience_left(&p, now), LEAVE_TIME);
	while (now < end) {
		nanotime wait = patience_left(&p, now);

		now += wait;
		waited += wait;
		patience_spend(&p, wait, now);
		now += TIME_S / 6000; /* the next command */
	}
	cr_expect_leq(waited,
		      10 * TIME_S / LIMIT_WAIT_SHARE + LIMIT_WAIT_BURST_MS * TIME_MS + LEAVE_TIME);
	cr_expect_geq(waited, 9 * TIME_S / LIMIT_WAIT_SHARE);
}

Test(patience, patience_comes_back_with_time)
{
	const nanotime burst = LIMIT_WAIT_BURST_MS * TIME_MS;
	struct patience p = { 0 };
	nanotime now = TIME_S;

	patience_spend(&p, burst, now);
	cr_expect_eq(patience_left(&p, now), 0);
	cr_expect_eq(patience_left(&p, now + LIMIT_WAIT_SHARE * LEAVE_TIME / 2), LEAVE_TIME / 2);
	cr_expect_eq(patience_left(&p, now + LIMIT_WAIT_SHARE * LEAVE_TIME), LEAVE_TIME);
	cr_expect_eq(patience_left(&p, now + 100 * TIME_S), LEAVE_TIME);
}
