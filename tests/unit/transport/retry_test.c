/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's clock: RNR times, timeouts, retry counts. */
#include <criterion/criterion.h>

#include "pair.h"
#include "transport/requester/retry.h"

static struct pair pair;
static struct pair_options o;

static void start(void)
{
	o = pair_options();
}

static void finish(void)
{
	pair_close(&pair);
}

static bool lose_all(struct pair *p, struct end *to, struct packet *packet)
{
	(void)packet;
	p->seen += to == &p->b;
	return false;
}

Test(rnr_timer, table)
{
	/* IBTA table 45, in milliseconds. */
	static const double table[32] = { 655.36, 0.01,	  0.02,	  0.03,	 0.04,	0.06,  0.08,
					  0.12,	  0.16,	  0.24,	  0.32,	 0.48,	0.64,  0.96,
					  1.28,	  1.92,	  2.56,	  3.84,	 5.12,	7.68,  10.24,
					  15.36,  20.48,  30.72,  40.96, 61.44, 81.92, 122.88,
					  163.84, 245.76, 327.68, 491.52 };

	for (uint8_t i = 0; i < 32; i++)
		cr_expect_eq(rnr_time(i), (nanotime)(table[i] * 1e6 + 0.5), "code %u: %lu", i,
			     rnr_time(i));
}

TestSuite(retry, .init = start, .fini = finish, .timeout = 60);

/* Not before 4.096 us * 2^timeout, and within four times that (protocol-map 103). */
Test(retry, timeout_exponents)
{
	for (uint8_t t = 0; t <= 31; t++) {
		struct packet p;

		o.timeout = t;
		pair_init(&pair, &o);
		pair.now = 5000;
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, 0, 0, 8, 0);
		cr_assert_eq(qp_deadline(pair.a.qp), TIME_NEVER, "nothing was sent yet");
		cr_assert(pair_next(&pair, &pair.a, &p));
		if (t == 0)
			cr_assert_eq(qp_deadline(pair.a.qp), TIME_NEVER);
		else
			cr_assert_eq(qp_deadline(pair.a.qp), 5000 + (UINT64_C(4096) << t));
		if (t != 31)
			pair_close(&pair);
	}
}

/* With timeout 14, 67 ms: each try waits twice as long as the one before, but no longer than 250 ms. */
static nanotime given_up_after(uint32_t retries)
{
	static const nanotime ms[8] = { 0, 0, 250, 500, 750, 1000, 1250, 1500 };
	const nanotime once = UINT64_C(4096) << 14;

	return retries == 0 ? once : 3 * once + ms[retries] * TIME_MS;
}

Test(retry, retry_count_is_exact)
{
	for (uint8_t n = 0; n <= 7; n++) {
		o.retry_cnt = n;
		pair_init(&pair, &o);
		pair.pass = lose_all;
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, 0, 0, 8, 0);
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, 0, 0, 8, 0);
		pair_until(&pair, &pair.a, 3, 100);
		cr_assert_eq(pair.seen, 3u * (n + 1u), "retry_cnt %u: %u packets", n, pair.seen);
		cr_assert_eq(pair.now, given_up_after(n));
		cr_assert_eq(pair.a.done_count, 3, "one each, signalled or not");
		cr_assert_eq(pair.a.done[0].status, STATUS_RETRY_EXC_ERR);
		cr_assert_eq(pair.a.done[0].vendor_err, REASON_RETRIES_EXHAUSTED);
		cr_assert_eq(pair.a.done[1].status, STATUS_WR_FLUSH_ERR);
		cr_assert_eq(pair.a.done[2].status, STATUS_WR_FLUSH_ERR);
		cr_assert(pair.a.events & QP_EVENT_ENTERED_ERR);
		if (n != 7)
			pair_close(&pair);
	}
}

/* A timer of more than 250 ms is the program's own: what it waits for is as long each time. */
Test(retry, long_timeouts_are_not_prolonged)
{
	static const struct {
		uint8_t timeout;
		nanotime given_up; /* with two retries */
	} row[] = { { 15, 134217728 + 2 * UINT64_C(250000000) },
		    { 16, 3 * UINT64_C(268435456) },
		    { 20, 3 * UINT64_C(4294967296) },
		    { 31, 3 * (UINT64_C(4096) << 31) } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		o.retry_cnt = 2;
		o.timeout = row[i].timeout;
		pair_init(&pair, &o);
		pair.pass = lose_all;
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, 0, 0, 8, 0);
		pair_until(&pair, &pair.a, 1, 100);
		cr_expect_eq(pair.now, row[i].given_up, "timeout %u: %lu", row[i].timeout,
			     pair.now);
		if (row[i].timeout != 31)
			pair_close(&pair);
	}
}

static bool count_sends(struct pair *p, struct end *to, struct packet *packet)
{
	(void)packet;
	p->seen += to == &p->b;
	return true;
}

Test(retry, rnr_retry_count_is_exact)
{
	for (uint8_t n = 0; n < 7; n++) {
		o.rnr_retry = n;
		pair_init(&pair, &o);
		pair.pass = count_sends;
		pair_post(&pair, &pair.a, WORK_SEND, 0, 0, 8, 0);
		pair_until(&pair, &pair.a, 1, 100);
		cr_assert_eq(pair.seen, n + 1u);
		cr_assert_eq(pair.now, n * rnr_time(12));
		cr_assert_eq(pair.a.done[0].status, STATUS_RNR_RETRY_EXC_ERR);
		cr_assert_eq(pair.a.done[0].vendor_err, REASON_RNR_RETRIES_EXHAUSTED);
		if (n != 6)
			pair_close(&pair);
	}
}

Test(retry, rnr_retry_seven_is_for_ever)
{
	pair_init(&pair, &o);
	pair.pass = count_sends;
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 8, 0);
	pair_until(&pair, &pair.a, 1, 500);
	cr_assert_eq(pair.a.done_count, 0);
	cr_assert_eq(pair.seen, 501);
	pair_post_receive(&pair.b, 0, 8);
	pair_until(&pair, &pair.a, 1, 1);
	cr_assert_eq(pair.a.done[0].status, STATUS_SUCCESS);
	cr_assert_eq(pair.b.done_count, 1);
}

/*
 * The RNR wait (0.64 ms here) is longer than the timeout (8 us), which does not shorten it.
 * hostile H-132: a timer during an RNR wait.
 */
Test(retry, timer_does_not_shorten_an_rnr_wait)
{
	o.timeout = 1;
	pair_init(&pair, &o);
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 8, 0);
	pair_run(&pair);
	cr_assert_eq(qp_deadline(pair.a.qp), rnr_time(12));
	qp_expired(pair.a.qp, rnr_time(12) - 1);
	cr_assert_not(qp_has_packet(pair.a.qp));
	qp_expired(pair.a.qp, rnr_time(12));
	cr_assert(qp_has_packet(pair.a.qp));
}
