/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers for frames to come: how long an lcore keeps them, and what it does when the pool has none. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <rte_mempool.h>

#include "base/bits.h"
#include "loop_rig.h"

#define POLLS 100000

static void run_until(struct rig *r, uint32_t completions)
{
	for (int i = 0; i < POLLS && r->side[0].completions < completions; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, completions, "%u of %u messages completed",
		     r->side[0].completions, completions);
}

static void write_short(struct rig *r)
{
	uint32_t before = r->side[0].completions;

	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 64, WORK_SIGNALED));
	run_until(r, before + 1);
}

static uint32_t used(const struct rig *r)
{
	return rte_mempool_in_use_count(r->engine.pool);
}

static void *run_lcore(void *l)
{
	lcore_loop(l);
	return NULL;
}

/* Most turns have few packets, so the next one needs no trip to the pool. */
Test(blanks, buffers_for_more_frames_are_kept_for_a_while)
{
	struct rig *r = rig_open();
	const struct lcore *l = r->engine.lcore;

	for (uint32_t i = 1; i <= 3; i++) {
		write_short(r);
		cr_expect_eq(used(r), 2 * LIMIT_TURN - 2 * i, "a message and its acknowledgement");
		cr_expect_eq(used(r), l->blank_count);
	}
	for (uint32_t i = 0; i < LIMIT_BLANK_POLLS / 2; i++)
		rig_poll(r);
	cr_expect_gt(used(r), 0);
	for (uint32_t i = 0; i < LIMIT_BLANK_POLLS / 2; i++)
		rig_poll(r);
	cr_expect_eq(used(r), 0, "the lcore keeps %u", used(r));
	rig_close(r);
}

/* ... not even if it sleeps before it has polled that often. */
Test(blanks, an_lcore_that_sleeps_keeps_no_buffers)
{
	struct rig *r = rig_open();
	struct lcore *l = r->engine.lcore;
	nanotime until = clock_now() + 20 * TIME_S;
	pthread_t thread;

	write_short(r);
	cr_assert_gt(used(r), 0);
	r->client.page = calloc(1, sizeof(*r->client.page));
	r->engine.adaptive = true;
	l->idle_since = 1; /* idle for so long that it sleeps at once */
	cr_assert_eq(pthread_create(&thread, NULL, run_lcore, l), 0);
	while (__atomic_load_n(&l->stats.sleeps, __ATOMIC_RELAXED) == 0 && clock_now() < until)
		sched_yield();
	__atomic_store_n(&r->engine.stopping, 1, __ATOMIC_RELEASE);
	lcore_wake(l);
	pthread_join(thread, NULL);
	cr_expect_gt(l->stats.sleeps, 0, "it did not sleep within 20 s");
	cr_expect_lt(l->stats.polls, LIMIT_BLANK_POLLS, "%lu polls", l->stats.polls);
	cr_expect_eq(used(r), 0, "the lcore keeps %u", used(r));
	free(r->client.page);
	rig_close(r);
}

/* An embedding program gives the pool, and has it longer than the engine. */
Test(blanks, an_lcore_that_ends_keeps_no_buffers)
{
	struct rig *r = rig_open();

	write_short(r);
	cr_assert_gt(used(r), 0);
	cr_expect_eq(rig_close_counting(r), 0);
}

/* A turn that wants sixteen buffers goes on with one. */
Test(blanks, messages_pass_with_a_single_buffer)
{
	struct rig *r = rig_open();
	void *taken[4096];
	uint32_t n = 0;

	while (n < ARRAY_SIZE(taken) && rte_mempool_get(r->engine.pool, &taken[n]) == 0)
		n++;
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 64, WORK_SIGNALED));
	for (int i = 0; i < 100; i++)
		rig_poll(r);
	cr_expect_eq(r->side[0].completions, 0);
	cr_expect_geq(r->engine.lcore->stats.by_reason[REASON_NO_BUFFER], 100);
	rte_mempool_put(r->engine.pool, taken[--n]);
	run_until(r, 1);
	cr_expect_eq(r->side[0].last.status, STATUS_SUCCESS);
	rte_mempool_put_bulk(r->engine.pool, taken, n);
	rig_close(r);
}
