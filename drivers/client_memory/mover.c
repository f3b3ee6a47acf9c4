/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/mover.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "config/limits.h"
#include "drivers/client_memory/peer_atomic.h"
#include "queue/ring.h"
#include "queue/ring_client.h"

#define STRIDE ((uint32_t)sizeof(struct mover_batch *))

/* Every ring has room for all batches, so an enqueue cannot fail. */
#define SLOTS (2 * LIMIT_MOVER_BATCHES)

/*
 * The atomics here are between the mover's thread, the lcores and the control thread. All of these
 * are in the engine.
 */
struct mover {
	struct peer_memory peer;
	struct rte_ring *todo; /* producers: lcores; consumers: the thread, mover_stop */
	/* producers: the thread, mover_stop; consumer: one lcore */
	struct rte_ring *done[LIMIT_LCORES];
	struct mover_bell bell[LIMIT_LCORES]; /* if `sleeping` is NULL, there is no bell */
	uint32_t ringing; /* 1: the thread may be waking an lcore */
	uint32_t touching; /* odd: the thread may be writing memory that the engine maps */
	struct copy_breaks breaks; /* only the thread uses them */
	uint32_t lcores;
	uint32_t under_way; /* batches that were submitted and not polled */
	uint32_t sleeping; /* 1: the thread is about to wait on wake_fd */
	uint32_t stop; /* 1: no further copies are made */
	uint32_t closed; /* 1: no lcore may be woken, because it may be gone */
	uint32_t holders; /* the thread and the owner; the last one frees the mover */
	int wake_fd;
	pthread_t thread;
};

static struct rte_ring *new_ring(void)
{
	size_t octets = ring_bytes(SLOTS, STRIDE);
	void *memory = aligned_alloc(64, octets);

	if (memory == NULL)
		return NULL;
	memset(memory, 0, octets);
	ring_format(memory, SLOTS, true);
	return memory;
}

static void free_mover(struct mover *m)
{
	peer_memory_close(&m->peer);
	if (m->wake_fd >= 0)
		close(m->wake_fd);
	free(m->todo);
	for (uint32_t i = 0; i < m->lcores; i++)
		free(m->done[i]);
	free(m);
}

static void let_go(struct mover *m)
{
	if (__atomic_sub_fetch(&m->holders, 1, __ATOMIC_ACQ_REL) == 0)
		free_mover(m);
}

static struct mover_batch *take(struct rte_ring *r)
{
	struct mover_batch *batch;

	if (rte_ring_sc_dequeue_bulk_elem(r, &batch, STRIDE, 1, NULL) == 0)
		return NULL;
	return batch;
}

/*
 * Takes a batch as one of several consumers. mover_stop empties the ring, too, because the thread
 * may hang.
 */
static struct mover_batch *take_waiting(struct mover *m)
{
	struct mover_batch *batch;

	if (rte_ring_mc_dequeue_bulk_elem(m->todo, &batch, STRIDE, 1, NULL) == 0)
		return NULL;
	return batch;
}

static void ring_if_asleep(const struct mover_bell *bell)
{
	if (bell->sleeping != NULL && __atomic_load_n(bell->sleeping, __ATOMIC_RELAXED))
		doorbell_wake(bell->fd);
}

/*
 * The lcore exists as long as the owner has not closed the mover: mover_close sets `closed` and
 * returns only when it has seen `ringing` at 0 after that.
 */
static void ring(struct mover *m, const struct mover_bell *bell)
{
	if (bell->sleeping == NULL)
		return;
	__atomic_store_n(&m->ringing, 1, __ATOMIC_RELAXED);
	queue_fence(); /* pairs with the lcore's fence before it sleeps, and with mover_close's */
	if (!__atomic_load_n(&m->closed, __ATOMIC_ACQUIRE))
		ring_if_asleep(bell);
	__atomic_store_n(&m->ringing, 0, __ATOMIC_RELEASE);
}

static bool is_stopped(const struct mover *m)
{
	return __atomic_load_n(&m->stop, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Writes memory that the engine may unmap at any time. Before that, the engine revokes the pointer
 * in the copies or stops the thread, and then waits until the thread is not in this function
 * (mover_leaves_direct). False: the memory has become peer memory, and nothing was done.
 */
static bool write_direct(struct mover *m, struct peer_copy *c)
{
	bool ok;
	void *to;

	__atomic_store_n(&m->touching, m->touching + 1, __ATOMIC_RELAXED);
	/* Pairs with mover_leaves_direct: we see the revoked pointer, or it sees us. */
	queue_fence();
	to = __atomic_load_n(&c->direct, __ATOMIC_RELAXED);
	ok = !is_stopped(m) && to != NULL && to != MOVER_REVOKED;
	if (ok && c->atomic != NULL)
		ok = direct_atomic(to, c->atomic);
	else if (ok)
		copy_direct(to, c->local, c->length, c->tail);
	__atomic_store_n(&m->touching, m->touching + 1, __ATOMIC_RELEASE);
	c->ok = ok;
	return to != NULL;
}

static nanotime monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (nanotime)t.tv_sec * TIME_S + (nanotime)t.tv_nsec;
}

/* Another program's atomic may hold the stripe, but only for LIMIT_ATOMIC_WAIT. */
static bool atomic_of_peer(struct mover *m, const struct peer_copy *c)
{
	const struct peer_memory *peer = c->memory != NULL ? c->memory : &m->peer;
	const struct timespec nap = { .tv_nsec = LIMIT_ATOMIC_NAP_US * 1000 };
	int error;

	while ((error = peer_memory_atomic(peer, c->peer_address, c->atomic, monotonic())) ==
	       EBUSY) {
		if (is_stopped(m))
			return false;
		nanosleep(&nap, NULL);
	}
	return error == 0;
}

/* Acquire: pairs with the release of the thread that made this memory peer memory. */
static bool is_direct(const struct peer_copy *c)
{
	return __atomic_load_n(&c->direct, __ATOMIC_ACQUIRE) != NULL;
}

/*
 * Makes one copy to direct memory, or an atomic. False: the memory has become peer memory
 * meanwhile.
 */
static bool execute_one(struct mover *m, struct peer_copy *c)
{
	if (copy_chain_broken(&m->breaks, c->chain))
		return true;
	if (!is_direct(c))
		c->ok = atomic_of_peer(m, c);
	else if (!write_direct(m, c))
		return false;
	if (!c->ok)
		copy_chain_break(&m->breaks, c->chain);
	return true;
}

/*
 * The number of copies, from the first on, that are of peer memory. Such a run consists of reads,
 * and ends with the first write.
 */
static uint32_t peer_copies(const struct peer_copy *copy, uint32_t n)
{
	uint32_t run = 0;

	while (run < n && copy[run].atomic == NULL && !is_direct(&copy[run])) {
		run++;
		if (copy[run - 1].to_peer)
			break; /* a write may block, and the next copies may be revoked meanwhile */
	}
	return run;
}

static void execute_all(struct mover *m, struct peer_copy *copy, uint32_t n)
{
	for (uint32_t i = 0, run; i < n && !is_stopped(m); i += run) {
		run = peer_copies(copy + i, n - i);
		if (run > 0) {
			peer_memory_copy_chained(&m->peer, copy + i, run, &m->breaks);
			continue;
		}
		run = execute_one(m, &copy[i]) ? 1 : 0;
	}
}

static void give_back(struct mover *m, struct mover_batch *batch)
{
	/* Read first, because the batch belongs to the lcore as soon as it is in the ring. */
	uint32_t lcore = batch->lcore;

	rte_ring_mp_enqueue_bulk_elem(m->done[lcore], &batch, STRIDE, 1, NULL);
}

static void fail(struct mover_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++)
		batch->copy[i].ok = false;
}

static void execute(struct mover *m, struct mover_batch *batch)
{
	uint32_t lcore = batch->lcore;

	fail(batch);
	execute_all(m, batch->copy, batch->count);
	give_back(m, batch);
	ring(m, &m->bell[lcore]);
}

static void wait_for_work(struct mover *m)
{
	uint64_t count;

	__atomic_store_n(&m->sleeping, 1, __ATOMIC_RELAXED);
	queue_fence(); /* pairs with mover_submit: it sees us asleep, or we see its batch */
	if (rte_ring_empty(m->todo) && !__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE)) {
		struct pollfd p = { .fd = m->wake_fd, .events = POLLIN };

		poll(&p, 1, -1);
	}
	__atomic_store_n(&m->sleeping, 0, __ATOMIC_RELAXED);
	if (read(m->wake_fd, &count, sizeof(count)) < 0)
		return; /* EAGAIN: nobody has written to it */
}

static void *mover_run(void *arg)
{
	struct mover *m = arg;

	pthread_setname_np(pthread_self(), "uroce-mover");
	for (;;) {
		struct mover_batch *batch = take_waiting(m);

		if (batch != NULL)
			execute(m, batch);
		else if (__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE))
			break;
		else
			wait_for_work(m);
	}
	let_go(m);
	return NULL;
}

static bool allocate_parts(struct mover *m, const struct peer_memory *peer)
{
	if (peer != NULL && peer_memory_clone(&m->peer, peer) != 0)
		return false;
	m->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (m->wake_fd < 0)
		return false;
	m->todo = new_ring();
	for (uint32_t i = 0; i < m->lcores; i++)
		m->done[i] = new_ring();
	for (uint32_t i = 0; i < m->lcores; i++)
		if (m->done[i] == NULL)
			return false;
	return m->todo != NULL;
}

static int start_thread(struct mover *m)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int error;

	/* Signals of an embedding program must go to its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	error = pthread_create(&m->thread, &attr, mover_run, m);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
}

struct mover *mover_create(const struct peer_memory *peer, const struct mover_bell *bell,
			   uint32_t lcores)
{
	struct mover *m = calloc(1, sizeof(*m));
	int error;

	if (m == NULL)
		return NULL;
	assert(lcores >= 1 && lcores <= LIMIT_LCORES && "the engine's own number");
	m->lcores = lcores;
	if (bell != NULL)
		memcpy(m->bell, bell, lcores * sizeof(*bell));
	m->holders = 2;
	m->wake_fd = m->peer.fd = -1;
	errno = ENOMEM;
	error = allocate_parts(m, peer) ? start_thread(m) : errno;
	if (error != 0) {
		free_mover(m);
		errno = error;
		return NULL;
	}
	return m;
}

bool mover_submit(struct mover *m, struct mover_batch *batch)
{
	assert(batch->lcore < m->lcores && "the engine's own number");
	if (__atomic_fetch_add(&m->under_way, 1, __ATOMIC_RELAXED) >= LIMIT_MOVER_BATCHES) {
		__atomic_fetch_sub(&m->under_way, 1, __ATOMIC_RELAXED);
		return false;
	}
	rte_ring_mp_enqueue_bulk_elem(m->todo, &batch, STRIDE, 1, NULL);
	queue_fence(); /* pairs with wait_for_work */
	if (__atomic_load_n(&m->sleeping, __ATOMIC_RELAXED))
		doorbell_wake(m->wake_fd);
	return true;
}

struct mover_batch *mover_poll(struct mover *m, uint32_t lcore)
{
	struct mover_batch *batch = take(m->done[lcore]);

	if (batch != NULL)
		__atomic_fetch_sub(&m->under_way, 1, __ATOMIC_RELAXED);
	return batch;
}

void mover_leaves_direct(const struct mover *m)
{
	uint32_t was;

	queue_fence(); /* pairs with write_direct */
	was = __atomic_load_n(&m->touching, __ATOMIC_ACQUIRE);
	while (was % 2 != 0 && __atomic_load_n(&m->touching, __ATOMIC_ACQUIRE) == was)
		sched_yield(); /* bounded: write_direct never blocks */
}

void mover_stop(struct mover *m)
{
	struct mover_batch *batch;

	__atomic_store_n(&m->stop, 1, __ATOMIC_RELEASE);
	while ((batch = take_waiting(m)) != NULL) {
		fail(batch);
		give_back(m, batch);
	}
	doorbell_wake(m->wake_fd);
	queue_fence(); /* pairs with the lcore's fence before it sleeps */
	for (uint32_t i = 0; i < m->lcores; i++)
		ring_if_asleep(&m->bell[i]);
}

void mover_close(struct mover *m)
{
	__atomic_store_n(&m->closed, 1, __ATOMIC_RELEASE);
	mover_stop(m);
	queue_fence(); /* pairs with ring(): it sees `closed`, or we see `ringing` */
	while (__atomic_load_n(&m->ringing, __ATOMIC_ACQUIRE) != 0)
		sched_yield(); /* bounded: ring() never blocks */
	mover_leaves_direct(m);
	let_go(m);
}
