/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on memory of programs whose copies may block. The calls that reach this memory go through
 * this test, which holds up one of them at will: no lcore, queue pair or atomic of another program
 * stands still.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/client_memory/mover.h"
#include "loop_rig.h"
#include "lcore/moving/moving.h"
#include "queue/doorbell.h"

#define PATIENCE (20 * TIME_S)
#define PAGE	 4096u
#define SOMEBODY 1234u /* a user */
#define POLLS	 2000

ssize_t __real_pread64(int fd, void *to, size_t n, off64_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off64_t at);

static const void *held_word; /* the first copy of it waits */
static sem_t reached, released;

ssize_t __wrap_pread64(int fd, void *to, size_t n, off64_t at)
{
	const void *word = __atomic_load_n(&held_word, __ATOMIC_ACQUIRE);

	if (word != NULL && (uintptr_t)at == (uintptr_t)word) {
		__atomic_store_n(&held_word, NULL, __ATOMIC_RELEASE);
		sem_post(&reached);
		while (sem_wait(&released) != 0)
			;
	}
	return __real_pread64(fd, to, n, at);
}

static struct rig *r;
static struct client other; /* of the sides 2 and 3, with a mover */

static struct peer_memory *memory_of(uid_t user)
{
	struct peer_memory *m = calloc(1, sizeof(*m));

	cr_assert_eq(peer_memory_open(m, open("/proc/self/mem", O_RDWR | O_CLOEXEC), 0, user), 0);
	return m;
}

static void give_mover(struct client *c)
{
	c->mover = mover_create(c->memory, NULL, 1);
	cr_assert_not_null(c->mover);
}

/* Accesses to that side's memory go through the descriptor; it begins with a page. */
static void make_peer(uint32_t side, struct client *c)
{
	struct region *m =
		(struct region *)(uintptr_t)key_withdraw(&r->engine.keys, r->side[side].key);

	free(r->side[side].buffer);
	r->side[side].buffer = aligned_alloc(PAGE, RIG_BUFFER);
	memset(r->side[side].buffer, 0, RIG_BUFFER);
	m->client = c->number;
	m->iova = (uintptr_t)r->side[side].buffer;
	m->piece[0].direct = NULL;
	m->piece[0].peer_address = (uintptr_t)r->side[side].buffer;
	key_publish(&r->engine.keys, r->side[side].key, m);
}

/* A doorbell ring that no program uses: rig_post rings the first client's. */
static void give_bell(struct client *c)
{
	void *ring = arena_at(
		r->arena, arena_allocate(r->arena, ring_bytes(DOORBELL_SLOTS, DOORBELL_STRIDE)));

	ring_format(ring, DOORBELL_SLOTS, true);
	ring_side_init(&c->bell[0], ring, DOORBELL_SLOTS, DOORBELL_STRIDE);
}

static void open_rig(uid_t own_user)
{
	rig_timeout = 0;
	sem_init(&reached, 0, 0);
	sem_init(&released, 0, 0);
	r = rig_open();
	other = r->client;
	other.number = 1;
	other.memory = memory_of(SOMEBODY);
	give_mover(&other);
	r->client.memory = memory_of(own_user);
	r->engine.client[0] = &r->client;
	r->engine.client[1] = &other;
	give_bell(&other);
	lcore_client_attach(r->engine.lcore, &other);
	r->side[2].qp.client = r->side[3].qp.client = &other;
	make_peer(1, &r->client);
	make_peer(3, &other);
}

static void forget_client(struct client *c)
{
	if (c->mover != NULL) {
		cr_assert_null(mover_poll(c->mover, 0));
		mover_close(c->mover);
	}
	peer_memory_close(c->memory);
	free(c->memory);
}

static void close_rig(void)
{
	forget_client(&r->client);
	forget_client(&other);
	rig_close(r);
}

static uint64_t *word_of(uint32_t side)
{
	return (uint64_t *)(void *)r->side[side].buffer;
}

static void poll_some(void)
{
	for (int i = 0; i < POLLS; i++)
		rig_poll(r);
}

static void succeeds(uint32_t side, uint32_t completions)
{
	nanotime until = clock_now() + PATIENCE;

	while (r->side[side].completions < completions && clock_now() < until)
		rig_poll(r);
	cr_assert_eq(r->side[side].completions, completions, "%u of %u completions came",
		     r->side[side].completions, completions);
	cr_assert_eq(r->side[side].last.status, STATUS_SUCCESS, "status %u, reason: %s",
		     r->side[side].last.status, reason_sentence(r->side[side].last.vendor_err));
}

static void post_atomic(uint32_t side)
{
	cr_assert(rig_post(r, side, WORK_ATOMIC_FETCH_AND_ADD, 8, WORK_SIGNALED));
}

/* The other client's mover is in the midst of an atomic on the first word of a page. */
static void hold_other(void)
{
	nanotime until = clock_now() + PATIENCE;

	__atomic_store_n(&held_word, word_of(3), __ATOMIC_RELEASE);
	post_atomic(2);
	while (sem_trywait(&reached) != 0) {
		rig_poll(r);
		cr_assert_lt(clock_now(), until, "the mover does not come to the word");
	}
}

static void release_other(void)
{
	sem_post(&released);
	succeeds(2, 1);
}

/* Its lcore is this thread: if it made the atomic itself the test would end here. */
Test(atomic, of_another_user_that_is_stuck_stops_nobody, .timeout = 60)
{
	open_rig(SOMEBODY + 1);
	hold_other();
	for (uint32_t i = 0; i < 10; i++) {
		nanotime begin = clock_now();

		post_atomic(0);
		cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, 64, 64, 4096, WORK_SIGNALED));
		succeeds(0, 2 * i + 2);
		cr_expect_not(moving_tries(r->engine.lcore), "it found its stripe free");
		cr_expect_lt(clock_now() - begin, PATIENCE);
	}
	cr_expect_eq(r->side[2].completions, 0);
	release_other();
	close_rig();
}

static void wait_for_tries(void)
{
	nanotime until = clock_now() + PATIENCE;

	while (!moving_tries(r->engine.lcore)) {
		rig_poll(r);
		cr_assert_lt(clock_now(), until, "the atomic does not wait");
	}
}

/* Of the same user, whose programs share the stripes. By the lcore, which tries again. */
Test(atomic, of_the_same_user_waits_and_stops_nobody, .timeout = 60)
{
	open_rig(SOMEBODY);
	*word_of(1) = 5;
	*word_of(0) = 7;
	hold_other();
	post_atomic(0);
	cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, 8, 0, 8, WORK_SIGNALED));
	memset(r->side[0].buffer + 8, 0x11, 8);
	wait_for_tries();
	for (uint32_t i = 0; i < 100 && moving_tries(r->engine.lcore); i++) {
		cr_assert_eq(*word_of(1), 5, "nothing is done before it or behind it");
		rig_poll(r);
	}
	/* The queue pair that it waits at sends, and gets its answers. */
	cr_assert(rig_post_at(r, 1, WORK_RDMA_WRITE, 4096, 4096, 4096, WORK_SIGNALED));
	succeeds(1, 1);
	succeeds(0, 2);
	cr_expect_eq(*word_of(0), 5, "what the atomic saw");
	cr_expect_eq(*word_of(1), UINT64_C(0x1111111111111111), "the WRITE came behind it");
	cr_expect_not(moving_tries(r->engine.lcore));
	cr_expect_eq(r->side[2].completions, 0, "that one is stuck still");
	release_other();
	close_rig();
}

/* ... and by a mover. */
Test(atomic, of_the_same_user_waits_at_its_mover, .timeout = 60)
{
	open_rig(SOMEBODY);
	give_mover(&r->client);
	*word_of(1) = 5;
	hold_other();
	post_atomic(0);
	succeeds(0, 1);
	cr_expect_eq(*word_of(0), 5);
	cr_expect_eq(r->side[2].completions, 0);
	release_other();
	close_rig();
}

/* Many of several queue pairs and programs at the same word's stripe: each is done once. */
Test(atomic, of_many_lose_nothing, .timeout = 60)
{
	open_rig(SOMEBODY);
	for (uint32_t i = 0; i < 200; i++) {
		post_atomic(0);
		post_atomic(2);
		rig_poll(r);
	}
	succeeds(0, 200);
	succeeds(2, 200);
	cr_expect_eq(r->engine.lcore->stats.by_reason[REASON_MEMORY_FAULT], 0);
	close_rig();
}

static void reset(struct engine_qp *q)
{
	struct qp_attributes a = { .state = QP_STATE_RESET };

	cr_assert_eq(qp_modify(q->core, &a, QP_ATTR_STATE, NULL), 0);
	lcore_qp_touch(r->engine.lcore, q, clock_now());
}

/* One that waits goes with its queue pair, and is counted as a copy of its client until then. */
Test(atomic, that_waits_goes_with_its_queue_pair, .timeout = 60)
{
	struct lcore *l;

	open_rig(SOMEBODY);
	l = r->engine.lcore;
	*word_of(1) = 5;
	hold_other();
	post_atomic(0);
	wait_for_tries();
	cr_expect_gt(moving_jobs_of(l, &r->client, moving_newest(l)), 0);
	reset(&r->side[1].qp);
	poll_some();
	cr_expect_not(moving_tries(l));
	cr_expect_eq(moving_jobs_of(l, &r->client, moving_newest(l)), 0);
	cr_expect_eq(*word_of(1), 5);
	release_other();
	close_rig();
}
