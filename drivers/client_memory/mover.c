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
#include <unistd.h>

#include "config/limits.h"
#include "queue/ring.h"
#include "queue/ring_client.h"

#define STRIDE ((uint32_t)sizeof(struct mover_batch *))

/* Room for all batches in every ring: an enqueue cannot fail. */
#define SLOTS (2 * MOVER_BATCHES)

struct mover {
	struct peer_memory peer;
	struct rte_ring *todo; /* many producers: lcores; consumer: the thread */
	struct rte_ring *done[LIMIT_LCORES]; /* producer: the thread; consumer: one lcore */
	struct mover_bell bell[LIMIT_LCORES]; /* sleeping NULL: none */
	uint32_t ringing; /* the thread may be at a lcore's bell */
	uint32_t lcores;
	uint32_t under_way;
	uint32_t sleeping; /* the thread is about to wait on wake_fd */
	uint32_t stop;
	uint32_t holders; /* the thread and the owner: the last one frees */
	struct mover_batch *held; /* the batch in the thread's hands */
	int wake_fd;
	int ended_fd; /* readable once the thread is through */
	pthread_t thread;
};

static struct rte_ring *new_ring(bool many_producers)
{
	size_t octets = ring_bytes(SLOTS, STRIDE);
	void *memory = aligned_alloc(64, octets);

	if (memory == NULL)
		return NULL;
	memset(memory, 0, octets);
	ring_format(memory, SLOTS, many_producers);
	return memory;
}

static void free_mover(struct mover *m)
{
	peer_memory_close(&m->peer);
	if (m->wake_fd >= 0)
		close(m->wake_fd);
	if (m->ended_fd >= 0)
		close(m->ended_fd);
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

/* As one of several consumers: mover_destroy empties the ring too when the thread hangs. */
static struct mover_batch *take_waiting(struct mover *m)
{
	struct mover_batch *batch;

	if (rte_ring_mc_dequeue_bulk_elem(m->todo, &batch, STRIDE, 1, NULL) == 0)
		return NULL;
	return batch;
}

/*
 * The lcore is there as long as nobody asked the thread to stop: mover_destroy does not return
 * before `ringing` was seen at 0 behind `stop`.
 */
static void ring(struct mover *m, const struct mover_bell *bell)
{
	if (bell->sleeping == NULL)
		return;
	__atomic_store_n(&m->ringing, 1, __ATOMIC_RELAXED);
	queue_fence(); /* pairs with the lcore's before it sleeps, and with mover_destroy's */
	if (!__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE) &&
	    __atomic_load_n(bell->sleeping, __ATOMIC_RELAXED))
		doorbell_wake(bell->fd);
	__atomic_store_n(&m->ringing, 0, __ATOMIC_RELEASE);
}

static void execute(struct mover *m, struct mover_batch *batch)
{
	uint32_t lcore = batch->lcore;

	__atomic_store_n(&m->held, batch, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < batch->count; i++)
		batch->copy[i].ok = false;
	if (!__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE))
		peer_memory_copy(&m->peer, batch->copy, batch->count);
	__atomic_store_n(&m->held, NULL, __ATOMIC_RELEASE);
	rte_ring_sp_enqueue_bulk_elem(m->done[lcore], &batch, STRIDE, 1, NULL);
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
		return; /* EAGAIN: nobody kicked */
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
	doorbell_wake(m->ended_fd);
	let_go(m);
	return NULL;
}

static bool allocate_parts(struct mover *m, const struct peer_memory *peer)
{
	if (peer != NULL && peer_memory_clone(&m->peer, peer) != 0)
		return false;
	m->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	m->ended_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (m->wake_fd < 0 || m->ended_fd < 0)
		return false;
	m->todo = new_ring(true);
	for (uint32_t i = 0; i < m->lcores; i++)
		m->done[i] = new_ring(false);
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

	/* signals of an embedding program are for its own threads */
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
	m->wake_fd = m->ended_fd = m->peer.fd = -1;
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
	if (__atomic_fetch_add(&m->under_way, 1, __ATOMIC_RELAXED) >= MOVER_BATCHES) {
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

/* The thread is stuck and will not take these: they go back as failed. */
static void give_back_waiting(struct mover *m, void (*give_back)(struct mover_batch *, void *),
			      void *arg)
{
	struct mover_batch *batch;

	while ((batch = take_waiting(m)) != NULL) {
		for (uint32_t i = 0; i < batch->count; i++)
			batch->copy[i].ok = false;
		if (give_back != NULL)
			give_back(batch, arg);
	}
}

static bool has_ended(struct mover *m, uint32_t timeout_ms)
{
	struct pollfd p = { .fd = m->ended_fd, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, (int)timeout_ms);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

static void give_back_done(struct mover *m, void (*give_back)(struct mover_batch *, void *),
			   void *arg)
{
	struct mover_batch *batch;

	for (uint32_t i = 0; i < m->lcores; i++)
		while ((batch = mover_poll(m, i)) != NULL)
			if (give_back != NULL)
				give_back(batch, arg);
}

struct mover_batch *mover_destroy(struct mover *m, uint32_t timeout_ms,
				  void (*give_back)(struct mover_batch *batch, void *arg),
				  void *arg)
{
	struct mover_batch *held = NULL;

	__atomic_store_n(&m->stop, 1, __ATOMIC_RELEASE);
	queue_fence(); /* pairs with ring: it sees us, or we see it there */
	while (__atomic_load_n(&m->ringing, __ATOMIC_ACQUIRE) != 0)
		sched_yield(); /* nothing blocks there */
	doorbell_wake(m->wake_fd);
	if (!has_ended(m, timeout_ms)) {
		give_back_waiting(m, give_back, arg);
		held = __atomic_load_n(&m->held, __ATOMIC_ACQUIRE);
		/* between two batches: it came back just now, and nothing is left to keep it */
		if (held == NULL)
			has_ended(m, 1000);
	}
	give_back_done(m, give_back, arg);
	let_go(m);
	return held;
}
