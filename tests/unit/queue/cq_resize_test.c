/* SPDX-License-Identifier: BSD-3-Clause */
/* A CQ is resized while lcores complete into it and a program polls. */
#include "queue/cq_resize.h"
#include "queue/ring.h"
#include "queue/ring_client.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define STRIDE ((uint32_t)sizeof(struct completion))
#define LCORES 3u
#define EACH   15000u
#define MOVES  200u

struct cq {
	struct cq_rings rings; /* the engine's */
	struct cq_page page;
	struct rte_ring *ring; /* the program's */
	struct cq_backlog backlog;
	bool one_lcore;
};

static struct rte_ring *new_ring(struct cq *q, struct cq_ring *half, uint32_t size)
{
	struct rte_ring *ring = aligned_alloc(64, ring_bytes(size, STRIDE));

	cr_assert_not_null(ring);
	memset(ring, 0, ring_bytes(size, STRIDE));
	ring_format(ring, size, false);
	cq_ring_init(half, ring, &q->page, size, size - 1);
	half->one_lcore = q->one_lcore;
	return ring;
}

static struct cq *new_cq(uint32_t size, bool one_lcore)
{
	struct cq *q = calloc(1, sizeof(*q));

	cr_assert_not_null(q);
	q->one_lcore = one_lcore;
	q->rings.now = &q->rings.half[0];
	q->ring = new_ring(q, q->rings.now, size);
	return q;
}

static void free_cq(struct cq *q)
{
	free(q->ring);
	free(q->backlog.held);
	free(q);
}

static bool take(struct cq *q, struct completion *c)
{
	const struct completion *oldest;

	if (q->backlog.count > 0) {
		cq_backlog_pop(&q->backlog, c);
		return true;
	}
	oldest = ring_client_peek(q->ring, STRIDE);
	if (oldest == NULL)
		return false;
	*c = *oldest;
	ring_client_release(q->ring, 1);
	return true;
}

/* As ibv_resize_cq does: `quiet` is the grace period, after which no lcore uses the old ring. */
static void move(struct cq *q, uint32_t size, void (*quiet)(void *), void *arg)
{
	struct rte_ring *next = new_ring(q, cq_rings_spare(&q->rings), size), *old = q->ring;
	struct completion *room;
	uint32_t slots;

	cq_rings_switch(&q->rings);
	quiet(arg);
	slots = q->backlog.count + cq_ring_unpolled(old);
	room = malloc((slots + 1) * sizeof(*room));
	cr_assert_not_null(room);
	free(cq_backlog_take_over(&q->backlog, old, room, slots));
	cr_assert_eq(cq_ring_unpolled(old), 0);
	q->ring = next;
	free(old);
}

static void at_once(void *arg)
{
}

static void push(struct cq *q, uint64_t *wr_id, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct completion c = { .wr_id = (*wr_id)++ };

		cr_assert(cq_ring_push(cq_rings_now(&q->rings), &c));
	}
}

static void expect(struct cq *q, uint64_t *wr_id, uint32_t n)
{
	struct completion c;

	for (uint32_t i = 0; i < n; i++) {
		cr_assert(take(q, &c));
		cr_assert_eq(c.wr_id, (*wr_id)++);
	}
}

static void resize_with_unpolled(bool one_lcore)
{
	struct cq *q = new_cq(8, one_lcore);
	uint64_t in = 0, out = 0;
	struct completion c;

	push(q, &in, 7);
	expect(q, &out, 2);
	move(q, 16, at_once, NULL); /* 5 are carried over */
	push(q, &in, 15);
	expect(q, &out, 3);
	move(q, 32, at_once, NULL); /* 2 of the first ring, 15 of the second */
	push(q, &in, 4);
	expect(q, &out, 2 + 15 + 1);
	move(q, 4, at_once, NULL); /* smaller: 3 are carried over, and 3 more fit */
	push(q, &in, 3);
	c.wr_id = 0;
	cr_assert_not(cq_ring_push(cq_rings_now(&q->rings), &c));
	expect(q, &out, 6);
	cr_assert_not(take(q, &c));
	cr_assert_eq(in, out);
	free_cq(q);
}

Test(cq_resize, unpolled_completions_stay_and_keep_their_order)
{
	resize_with_unpolled(false);
	resize_with_unpolled(true);
}

Test(cq_resize, an_arming_survives)
{
	struct cq *q = new_cq(8, false);

	cq_ring_arm(&q->page, CQ_ARMED_NEXT);
	move(q, 16, at_once, NULL);
	cr_assert(cq_ring_take_arming(cq_rings_now(&q->rings), false));
	free_cq(q);
}

/* ---- with lcores ---- */

struct lcore {
	struct cq *q;
	uint32_t number;
	uint32_t asked; /* the control thread asks whether the lcore is between two pushes ... */
	uint32_t answered; /* ... and the lcore answers that it is */
	uint32_t ended;
};

static void look_at_messages(struct lcore *l)
{
	__atomic_store_n(&l->answered, __atomic_load_n(&l->asked, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

static void *complete(void *arg)
{
	struct lcore *l = arg;

	for (uint32_t i = 0; i < EACH; i++) {
		struct completion c = { .wr_id = i, .qp_num = l->number };

		while (!cq_ring_push(cq_rings_now(&l->q->rings), &c)) {
			look_at_messages(l);
			sched_yield();
		}
		if (i % 16 == 0)
			look_at_messages(l);
	}
	__atomic_store_n(&l->ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void grace_period(void *arg)
{
	struct lcore *l = arg;

	for (uint32_t i = 0; i < LCORES; i++) {
		uint32_t wanted = l[i].asked + 1;

		__atomic_store_n(&l[i].asked, wanted, __ATOMIC_RELEASE);
		while (__atomic_load_n(&l[i].answered, __ATOMIC_ACQUIRE) != wanted &&
		       !__atomic_load_n(&l[i].ended, __ATOMIC_ACQUIRE))
			sched_yield();
	}
}

static void push_of(struct cq *q, uint32_t qp_handle, uint64_t wr_id)
{
	struct completion c = { .wr_id = wr_id, .qp_handle = qp_handle };

	cr_assert(cq_ring_push(cq_rings_now(&q->rings), &c));
}

/* In the backlog and in the ring, also across the end of the ring. */
Test(cq_resize, a_queue_pair_is_forgotten)
{
	struct cq *q = new_cq(8, true);
	struct completion c;

	for (uint64_t i = 0; i < 5; i++) {
		push_of(q, 9, i);
		cr_assert(take(q, &c));
	}
	for (uint64_t i = 0; i < 6; i++)
		push_of(q, 1 + i % 2, i);
	move(q, 8, at_once, NULL);
	for (uint64_t i = 6; i < 12; i++)
		push_of(q, 1 + i % 2, i);
	cq_forget(&q->backlog, q->ring, 2);
	for (uint64_t i = 0; i < 12; i++) {
		cr_assert(take(q, &c));
		cr_assert_eq(c.wr_id, i);
		cr_assert_eq(c.qp_handle, i % 2 == 0 ? 1 : CQ_FORGOTTEN);
	}
	push_of(q, 2, 12);
	cr_assert(take(q, &c));
	cr_assert_eq(c.qp_handle, 2, "what completes later counts");
	free_cq(q);
}

Test(cq_resize, what_satisfies_an_arming_is_seen)
{
	struct cq *q = new_cq(8, true);
	struct completion c = { .qp_handle = 3, .solicited = 1 };

	cr_assert(!cq_holds(&q->backlog, q->ring, false));
	push_of(q, 1, 0);
	cr_assert(cq_holds(&q->backlog, q->ring, false));
	cr_assert(!cq_holds(&q->backlog, q->ring, true));
	move(q, 8, at_once, NULL);
	cr_assert(cq_holds(&q->backlog, q->ring, false), "in the backlog");
	cr_assert(!cq_holds(&q->backlog, q->ring, true));
	cr_assert(cq_ring_push(cq_rings_now(&q->rings), &c));
	cr_assert(cq_holds(&q->backlog, q->ring, true), "in the ring, behind it");
	cq_forget(&q->backlog, q->ring, 3);
	cr_assert(!cq_holds(&q->backlog, q->ring, true), "forgotten");
	cq_forget(&q->backlog, q->ring, 1);
	cr_assert(!cq_holds(&q->backlog, q->ring, false), "forgotten");
	while (take(q, &c))
		;
	free_cq(q);
}

Test(cq_resize, three_lcores_complete_while_the_cq_is_resized, .timeout = 200)
{
	static const uint32_t sizes[] = { 64, 256, 32, 1024, 128 };
	struct lcore lcore[LCORES] = { 0 };
	struct cq *q = new_cq(64, false);
	uint64_t next[LCORES] = { 0 };
	uint32_t total = 0, moves = 0;
	pthread_t thread[LCORES];
	struct completion c;

	for (uint32_t i = 0; i < LCORES; i++) {
		lcore[i].q = q;
		lcore[i].number = i;
		cr_assert_eq(pthread_create(&thread[i], NULL, complete, &lcore[i]), 0);
	}
	while (total < LCORES * EACH) {
		if (total >= moves * (LCORES * EACH / MOVES)) {
			move(q, sizes[moves % 5], grace_period, lcore);
			moves++;
		}
		if (!take(q, &c)) {
			sched_yield();
			continue;
		}
		cr_assert_lt(c.qp_num, LCORES);
		cr_assert_eq(c.wr_id, next[c.qp_num]++, "of lcore %u", c.qp_num);
		total++;
	}
	for (uint32_t i = 0; i < LCORES; i++) {
		pthread_join(thread[i], NULL);
		cr_assert_eq(next[i], EACH);
	}
	cr_assert_geq(moves, MOVES);
	cr_assert_not(take(q, &c));
	free_cq(q);
}
