/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of a shared receive queue between lcores: used once each, put back without loss. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "lcore/srq.h"
#include "queue/ring_client.h"

#define LCORES	 3u
#define REQUESTS 60000u
#define SIZE	 64u

struct rig {
	struct engine engine;
	struct lcore *lcore;
	struct engine_srq srq;
	struct srq_ring ring;
	struct srq_page page;
	struct rte_ring *shared;
	uint8_t *used; /* by wr_id */
	uint32_t left; /* atomic */
};

static struct rte_ring *new_ring(uint32_t stride)
{
	struct rte_ring *shared = aligned_alloc(64, ring_bytes(SIZE, stride));

	cr_assert_not_null(shared);
	memset(shared, 0, ring_bytes(SIZE, stride));
	ring_format(shared, SIZE, false);
	return shared;
}

static struct rig *new_rig(uint32_t lcores)
{
	struct rig *r = aligned_alloc(64, round_up(sizeof(*r), 64));
	struct engine_srq *s;

	cr_assert_not_null(r);
	memset(r, 0, sizeof(*r));
	r->engine.lcores = lcores;
	r->lcore = aligned_alloc(64, lcores * sizeof(*r->lcore));
	memset(r->lcore, 0, lcores * sizeof(*r->lcore));
	s = &r->srq;
	s->stride = recv_work_stride(2);
	s->max_sge = 2;
	s->async_fd = -1;
	s->page = &r->page;
	s->back = calloc(2 * lcores, sizeof(*s->back));
	for (uint32_t i = 0; i < 2 * lcores; i++)
		s->back[i].work = calloc(1, s->stride);
	r->shared = new_ring(s->stride);
	srq_ring_init(&r->ring, r->shared, SIZE, s->stride);
	r->ring.one_lcore = lcores == 1;
	s->ring = &r->ring;
	for (uint32_t i = 0; i < lcores; i++) {
		r->lcore[i].engine = &r->engine;
		r->lcore[i].index = i;
	}
	return r;
}

static void free_rig(struct rig *r)
{
	for (uint32_t i = 0; i < 2 * r->engine.lcores; i++)
		free(r->srq.back[i].work);
	free(r->srq.back);
	free(r->shared);
	free(r->lcore);
	free(r);
}

static bool post(struct rte_ring *shared, uint32_t stride, uint64_t wr_id)
{
	struct recv_work *w = ring_client_reserve(shared, stride);

	if (w == NULL)
		return false;
	*w = (struct recv_work){ .wr_id = wr_id, .num_sge = 1 };
	recv_work_sge(w)[0] = (struct work_sge){ .addr = ~wr_id, .length = 1 };
	ring_client_publish(shared);
	return true;
}

static uint64_t take(struct rig *r, uint32_t lcore)
{
	const struct recv_work *w = srq_take(&r->lcore[lcore], &r->srq);

	cr_assert_not_null(w);
	return w->wr_id;
}

Test(srq_lcores, what_was_put_back_comes_before_what_is_posted)
{
	struct rig *r = new_rig(2);

	for (uint64_t i = 0; i < 3; i++)
		cr_assert(post(r->shared, r->srq.stride, i));
	cr_expect_eq(srq_waiting(&r->srq), 3);
	cr_expect_eq(take(r, 0), 0);
	srq_put_back(&r->lcore[0], &r->srq, (void *)r->lcore[0].srq_receive);
	cr_expect_eq(srq_waiting(&r->srq), 3);
	cr_expect_eq(take(r, 1), 0, "whichever lcore it was that put it back");
	cr_expect_eq(take(r, 0), 1);
	srq_put_back(&r->lcore[0], &r->srq, (void *)r->lcore[0].srq_receive);
	srq_put_back(&r->lcore[1], &r->srq, (void *)r->lcore[1].srq_receive);
	cr_expect_eq(take(r, 0) + take(r, 1), 1);
	cr_expect_eq(take(r, 0), 2);
	cr_expect_null(srq_take(&r->lcore[0], &r->srq));
	free_rig(r);
}

Test(srq_lcores, the_limit_counts_what_was_put_back)
{
	struct rig *r = new_rig(1);

	for (uint64_t i = 0; i < 3; i++)
		cr_assert(post(r->shared, r->srq.stride, i));
	r->srq.limit = 2;
	take(r, 0);
	srq_put_back(&r->lcore[0], &r->srq, (void *)r->lcore[0].srq_receive);
	take(r, 0);
	srq_used(&r->lcore[0], &r->srq);
	cr_expect_eq(r->srq.limit, 2);
	cr_expect_eq(r->page.used, 1);
	take(r, 0);
	srq_used(&r->lcore[0], &r->srq);
	cr_expect_eq(r->srq.limit, 0, "it was told, and is armed no more");
	free_rig(r);
}

/*
 * hostile H-92
 * hostile H-88: a forged receive request.
 */
Test(srq_lcores, elements_beyond_the_limit_are_neither_read_nor_believed)
{
	struct rig *r = new_rig(1);
	struct recv_work *slot = (struct recv_work *)(void *)(r->shared + 1);

	cr_assert(post(r->shared, r->srq.stride, 7));
	slot->num_sge = 3;
	memset(r->lcore[0].srq_receive, 0x77, sizeof(r->lcore[0].srq_receive));
	cr_expect_eq(srq_take(&r->lcore[0], &r->srq)->num_sge, UINT32_MAX);
	cr_expect_eq(r->lcore[0].srq_receive[sizeof(struct recv_work)], 0x77);
	free_rig(r);
}

/* protocol-map 168 */
Test(srq_lcores, an_old_ring_is_emptied_before_its_successor)
{
	struct rig *r = new_rig(2);
	struct rte_ring *more = new_ring(r->srq.stride);
	struct srq_ring next;

	srq_ring_init(&next, more, SIZE, r->srq.stride);
	for (uint64_t i = 0; i < 2; i++)
		cr_assert(post(r->shared, r->srq.stride, i));
	r->ring.next = &next;
	cr_assert(post(more, r->srq.stride, 2));
	cr_expect_eq(srq_waiting(&r->srq), 3);
	for (uint64_t i = 0; i < 3; i++)
		cr_expect_eq(take(r, i % 2), i);
	cr_expect_eq(r->srq.ring, &next);
	cr_expect_null(srq_take(&r->lcore[0], &r->srq));
	free(more);
	free_rig(r);
}

/* Two requests, in a ring that cannot be read yet, and in one that will be its successor. */
static struct rig *overtaken;
static struct srq_ring successor;
static struct rte_ring *later;

/* The program resizes the SRQ and posts into the new ring. Another lcore empties the old one. */
static void overtake(int signal_number)
{
	struct rig *r = overtaken;

	(void)signal_number;
	mprotect(r->shared, ring_bytes(SIZE, r->srq.stride), PROT_READ | PROT_WRITE);
	__atomic_store_n(&r->ring.next, &successor, __ATOMIC_RELEASE);
	if (!post(later, r->srq.stride, 1) || srq_take(&r->lcore[1], &r->srq) == NULL)
		_exit(1);
}

/*
 * An lcore has seen that the ring has no successor, and is about to look into the ring. The memory
 * of the ring cannot be read at first, so all that the others do happens exactly between the two.
 */
Test(srq_lcores, a_resize_between_two_looks_hides_no_request)
{
	const struct sigaction fault = { .sa_handler = overtake };
	struct rig *r = new_rig(2);
	uint32_t stride = r->srq.stride;

	free(r->shared);
	r->shared = mmap(NULL, ring_bytes(SIZE, stride), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(r->shared, MAP_FAILED);
	ring_format(r->shared, SIZE, false);
	srq_ring_init(&r->ring, r->shared, SIZE, stride);
	later = new_ring(stride);
	srq_ring_init(&successor, later, SIZE, stride);
	cr_assert(post(r->shared, stride, 0));
	overtaken = r;
	cr_assert_eq(sigaction(SIGSEGV, &fault, NULL), 0);
	cr_assert_eq(mprotect(r->shared, ring_bytes(SIZE, stride), PROT_NONE), 0);
	cr_expect_eq(take(r, 0), 1, "one is posted all the time");
	cr_expect_eq(r->ring.head, 1, "the other lcore was there");
	munmap(r->shared, ring_bytes(SIZE, stride));
	r->shared = NULL;
	free(later);
	free_rig(r);
}

struct thread {
	pthread_t thread;
	struct rig *rig;
	uint32_t lcore;
};

static void *run(void *argument)
{
	struct thread *t = argument;
	struct rig *r = t->rig;
	struct lcore *l = &r->lcore[t->lcore];
	uint32_t seed = t->lcore;

	while (__atomic_load_n(&r->left, __ATOMIC_RELAXED) != 0) {
		const struct recv_work *w = srq_take(l, &r->srq);

		if (w == NULL) {
			sched_yield();
			continue;
		}
		if (w->num_sge != 1 || recv_work_sge(w)[0].addr != ~w->wr_id)
			return (void *)1;
		seed = seed * 1664525 + 1013904223;
		if (seed >> 30 == 0) {
			srq_put_back(l, &r->srq, w);
			continue;
		}
		__atomic_fetch_add(&r->used[w->wr_id], 1, __ATOMIC_RELAXED);
		srq_used(l, &r->srq);
		__atomic_fetch_sub(&r->left, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

Test(srq_lcores, every_request_is_used_once_whoever_puts_it_back, .timeout = 60)
{
	struct rig *r = new_rig(LCORES);
	struct thread t[LCORES];

	r->left = REQUESTS;
	r->used = calloc(REQUESTS, 1);
	for (uint32_t i = 0; i < LCORES; i++) {
		t[i] = (struct thread){ .rig = r, .lcore = i };
		cr_assert_eq(pthread_create(&t[i].thread, NULL, run, &t[i]), 0);
	}
	for (uint64_t i = 0; i < REQUESTS;) {
		if (post(r->shared, r->srq.stride, i))
			i++;
		else
			sched_yield();
	}
	for (uint32_t i = 0; i < LCORES; i++) {
		void *torn;

		pthread_join(t[i].thread, &torn);
		cr_assert_null(torn, "a request was written while it was read");
	}
	for (uint32_t i = 0; i < REQUESTS; i++)
		cr_assert_eq(r->used[i], 1, "request %u was used %u times", i, r->used[i]);
	cr_expect_eq(r->page.used, REQUESTS);
	cr_expect_eq(srq_waiting(&r->srq), 0);
	free(r->used);
	free_rig(r);
}
