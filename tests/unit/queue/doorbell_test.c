/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/doorbell.h"
#include "queue/ring_client.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define QPS	3u
#define THREADS 4u
#define POSTS	20000u /* by each thread */

struct bell {
	struct rte_ring *ring;
	struct ring_side side;
	uint32_t mark[QPS];
	uint32_t posted[QPS]; /* instead of the request rings */
	uint32_t sleeping;
	int wake_fd;
};

static struct bell *new_bell(void)
{
	struct bell *b = calloc(1, sizeof(*b));

	cr_assert_not_null(b);
	b->ring = aligned_alloc(64, ring_bytes(DOORBELL_SLOTS, DOORBELL_STRIDE));
	cr_assert_not_null(b->ring);
	memset(b->ring, 0, ring_bytes(DOORBELL_SLOTS, DOORBELL_STRIDE));
	ring_format(b->ring, DOORBELL_SLOTS, true);
	ring_side_init(&b->side, b->ring, DOORBELL_SLOTS, DOORBELL_STRIDE);
	b->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	cr_assert_geq(b->wake_fd, 0);
	return b;
}

static void free_bell(struct bell *b)
{
	close(b->wake_fd);
	free(b->ring);
	free(b);
}

static void post(struct bell *b, uint32_t qp)
{
	__atomic_fetch_add(&b->posted[qp], 1, __ATOMIC_RELEASE);
	doorbell_ring(b->ring, &b->mark[qp], qp, &b->sleeping, b->wake_fd);
}

Test(doorbell, a_queue_pair_is_in_the_ring_once)
{
	struct bell *b = new_bell();
	uint32_t handles[8];

	for (uint32_t i = 0; i < 1000; i++)
		post(b, i % QPS);
	cr_assert_eq(doorbell_take(&b->side, handles, 8), QPS);
	for (uint32_t i = 0; i < QPS; i++)
		cr_assert_eq(handles[i], i);
	cr_assert_eq(doorbell_take(&b->side, handles, 8), 0);
	post(b, 1);
	cr_assert_eq(doorbell_take(&b->side, handles, 8), 0, "its mark is still set");
	doorbell_clear(&b->mark[1]);
	post(b, 1);
	cr_assert_eq(doorbell_take(&b->side, handles, 8), 1);
	free_bell(b);
}

Test(doorbell, the_eventfd_is_written_only_for_a_sleeping_lcore)
{
	struct bell *b = new_bell();
	uint64_t count;

	post(b, 0);
	cr_assert_lt(read(b->wake_fd, &count, sizeof(count)), 0);
	b->sleeping = 1;
	post(b, 1);
	cr_assert_eq(read(b->wake_fd, &count, sizeof(count)), (ssize_t)sizeof(count));
	cr_assert_eq(count, 1);
	free_bell(b);
}

/* hostile H-146: endless rings. */
Test(doorbell, a_broken_ring_yields_nothing)
{
	struct bell *b = new_bell();
	uint32_t handles[8];

	b->ring->prod.tail = 0x80000000;
	cr_assert_eq(doorbell_take(&b->side, handles, 8), 0);
	free_bell(b);
}

static void *poster(void *arg)
{
	struct bell *b = arg;

	for (uint32_t i = 0; i < POSTS; i++)
		post(b, i % QPS);
	return NULL;
}

static uint32_t drain(struct bell *b, uint32_t *seen)
{
	uint32_t handles[8], n = doorbell_take(&b->side, handles, 8), fresh = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t qp = handles[i], posted;

		cr_assert_lt(qp, QPS);
		doorbell_clear(&b->mark[qp]);
		posted = __atomic_load_n(&b->posted[qp], __ATOMIC_ACQUIRE);
		fresh += posted - seen[qp];
		seen[qp] = posted;
	}
	return fresh;
}

/*
 * An lcore that sleeps whenever it finds nothing must still see every post.
 * hostile H-133: both sides at once.
 */
Test(doorbell, no_post_is_lost_by_an_lcore_that_sleeps, .timeout = 200)
{
	struct bell *b = new_bell();
	pthread_t thread[THREADS];
	uint32_t seen[QPS] = { 0 }, total = 0;

	for (uint32_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, poster, b), 0);
	while (total < THREADS * POSTS) {
		struct pollfd p = { .fd = b->wake_fd, .events = POLLIN };
		uint32_t fresh = drain(b, seen);
		uint64_t count;

		cr_assert_leq(ring_readable(&b->side), QPS, "a queue pair is in the ring twice");
		total += fresh;
		if (fresh != 0)
			continue;
		__atomic_store_n(&b->sleeping, 1, __ATOMIC_RELAXED);
		queue_fence();
		if (ring_readable(&b->side) == 0 && total < THREADS * POSTS) {
			cr_assert_eq(poll(&p, 1, 10000), 1,
				     "the eventfd was not written: %u of %u posts seen", total,
				     THREADS * POSTS);
			cr_assert_gt(read(b->wake_fd, &count, sizeof(count)), 0);
		}
		__atomic_store_n(&b->sleeping, 0, __ATOMIC_RELAXED);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(total, THREADS * POSTS);
	free_bell(b);
}
