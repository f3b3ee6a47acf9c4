/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client keeps its mappings: it goes on writing into queues and ringing their doorbells while the
 * queues are destroyed and others take their place. Only its own queue pairs may fail, and nothing is left
 * behind.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/control_rig.h"
#include "queue/arena.h"
#include "queue/ring.h"
#include "queue/ring_client.h"

#define ROUNDS	   400u
#define REMEMBERED 4u /* queues that are written into: some of them are gone */
#define SLOTS_AT   (sizeof(struct rte_ring)) /* behind the ring's head */

TestSuite(control_stale_queue, .init = control_rig_open, .fini = control_rig_close, .timeout = 100);

struct queue {
	uint8_t *ring, *page; /* in the arena */
	uint32_t handle, octets;
};

static struct writer {
	uint8_t *arena;
	struct rte_ring *bell;
	pthread_mutex_t lock; /* of what is remembered */
	struct queue queue[REMEMBERED];
	uint32_t queues, rung;
	uint32_t stop; /* atomic */
} w = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * As another program that shares the memory would write it: not by an ordinary store, so sanitizers
 * do not object.
 */
static void put(uint8_t *to, uint32_t value)
{
	__atomic_store_n((uint32_t *)(void *)to, value, __ATOMIC_RELAXED);
}

static void write_into(const struct queue *q, unsigned int *seed)
{
	for (uint32_t i = 0; i < 32; i++)
		put(q->ring + SLOTS_AT + (uint32_t)rand_r(seed) % (q->octets / 4) * 4,
		    (uint32_t)rand_r(seed));
	/* Mostly as far as requests may be there, now and then further than the ring is long. */
	put(q->ring + RING_PRODUCER_TAIL, (uint32_t)rand_r(seed) % 20);
	put(q->ring + RING_CONSUMER_TAIL, (uint32_t)rand_r(seed));
	for (uint32_t at = 0; at < sizeof(struct qp_page); at += 4)
		put(q->page + at, 0);
	bell_enqueue(w.bell, q->handle);
}

static void *write_on(void *arg)
{
	unsigned int seed = 7;

	(void)arg;
	while (__atomic_load_n(&w.stop, __ATOMIC_RELAXED) == 0) {
		struct queue q;

		pthread_mutex_lock(&w.lock);
		q = w.queue[(uint32_t)rand_r(&seed) % REMEMBERED];
		pthread_mutex_unlock(&w.lock);
		if (q.ring == NULL)
			continue;
		write_into(&q, &seed);
		__atomic_fetch_add(&w.rung, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void remember(const struct reply_create_qp *r)
{
	pthread_mutex_lock(&w.lock);
	w.queue[w.queues++ % REMEMBERED] =
		(struct queue){ w.arena + r->sq_offset, w.arena + r->page_offset, r->handle,
				r->sq_size * r->sq_stride };
	pthread_mutex_unlock(&w.lock);
}

static int to_state(int fd, uint32_t qp, uint32_t state, uint32_t mask)
{
	struct request_modify_qp q = { .qp = qp,
				       .mask = mask | QP_ATTR_STATE,
				       .attributes = { .state = state, .port_num = 1 } };
	struct reply_modify_qp r;

	return ask(fd, COMMAND_MODIFY_QP, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static uint32_t make_sender(int fd, const struct objects *o, bool *rts)
{
	struct request_create_qp q = { .pd = o->pd,
				       .send_cq = o->cq,
				       .recv_cq = o->cq,
				       .type = QP_TYPE_UD,
				       .max_send_wr = 8,
				       .max_recv_wr = 8,
				       .max_send_sge = 2,
				       .max_recv_sge = 2 };
	struct reply_create_qp r;

	cr_assert_eq(create_qp(fd, &q, &r), 0);
	/* It may be in ERR at any of these: somebody writes where it stands. */
	*rts = to_state(fd, r.handle, QP_STATE_INIT,
			QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY) == 0 &&
	       to_state(fd, r.handle, QP_STATE_RTR, 0) == 0 &&
	       to_state(fd, r.handle, QP_STATE_RTS, QP_ATTR_SQ_PSN) == 0;
	remember(&r);
	return r.handle;
}

/* Until the lcore had a chance to see the present contents. */
static void await_writes(uint32_t more)
{
	uint32_t until = __atomic_load_n(&w.rung, __ATOMIC_RELAXED) + more;

	while ((int32_t)(until - __atomic_load_n(&w.rung, __ATOMIC_RELAXED)) > 0)
		sched_yield();
}

/* hostile H-87: a slot changes while it is used; H-112: queues that are gone. */
Test(control_stale_queue, writes_into_queues_that_are_gone)
{
	struct reply_hello hello;
	pthread_t thread;
	struct objects o;
	int arena, other = attach(), fd = attach_keeping(&hello, &arena);
	uint32_t qp, stays, began = 0;
	bool rts;

	w.arena = mmap(NULL, hello.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena, 0);
	cr_assert_neq(w.arena, MAP_FAILED);
	close(arena);
	w.bell = (struct rte_ring *)(void *)(w.arena + hello.bell_offset[0]);
	make_objects(other, &o);
	make_objects(fd, &o);
	stays = make_sender(fd, &o, &rts);
	cr_assert(rts);
	cr_assert_eq(pthread_create(&thread, NULL, write_on, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		qp = make_sender(fd, &o, &rts);
		began += rts;
		await_writes(4);
		cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_QP, qp, NULL), 0);
		await_writes(2);
	}
	__atomic_store_n(&w.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_QP, stays, NULL), 0);
	expect_counts(2, 2, 2, 2);
	cr_expect_gt(began, ROUNDS / 50, "each was in ERR before it was to send");
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_QP, o.qp, NULL), 0);
	close(fd);
	expect_counts(1, 1, 1, 1);
	expect_serving();
	close(other);
	munmap(w.arena, hello.arena_bytes);
}
