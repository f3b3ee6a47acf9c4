/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/srq_ring.h"
#include "queue/ring_client.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE   8u
#define STRIDE 64u
#define LCORES 4u
#define EACH   40000u

static struct rte_ring *new_ring(uint32_t size)
{
	struct rte_ring *r = aligned_alloc(64, ring_bytes(size, STRIDE));

	cr_assert_not_null(r);
	memset(r, 0, ring_bytes(size, STRIDE));
	ring_format(r, size, false);
	return r;
}

static bool post(struct rte_ring *r, uint64_t value)
{
	uint64_t *slot = ring_client_reserve(r, STRIDE);

	if (slot == NULL)
		return false;
	__atomic_store_n(&slot[0], value, __ATOMIC_RELAXED);
	__atomic_store_n(&slot[1], ~value, __ATOMIC_RELAXED);
	ring_client_publish(r);
	return true;
}

/* The program's stores and an lcore's loads of one slot may meet, see copy_pair. */
static bool is_whole(const uint64_t pair[2])
{
	return pair[0] == ~pair[1];
}

static void copy_pair(uint64_t to[2], const struct srq_ring_found *f)
{
	const uint64_t *slot = f->slot;

	to[0] = __atomic_load_n(&slot[0], __ATOMIC_RELAXED);
	to[1] = __atomic_load_n(&slot[1], __ATOMIC_RELAXED);
}

/* SRQ_RING_FOUND: took it. */
static enum srq_ring_look take(struct srq_ring *r, uint64_t *value)
{
	struct srq_ring_found f;
	uint64_t pair[2];
	enum srq_ring_look look;

	do {
		look = srq_ring_find(r, &f);
		if (look != SRQ_RING_FOUND)
			return look;
		copy_pair(pair, &f);
	} while (!srq_ring_take(r, &f));
	cr_assert(is_whole(pair), "a slot was given back while it was read");
	*value = pair[0];
	return look;
}

static void in_order(bool one_lcore)
{
	struct rte_ring *shared = new_ring(SIZE);
	struct srq_ring r;
	uint64_t next = 0, expected = 0, value;

	srq_ring_init(&r, shared, SIZE, STRIDE);
	r.one_lcore = one_lcore;
	for (uint32_t round = 0; round < 50; round++) {
		while (post(shared, next))
			next++;
		cr_assert_eq(srq_ring_waiting(&r), SIZE - 1);
		for (uint32_t i = 0; i < 1 + round % (SIZE - 1); i++) {
			cr_assert_eq(take(&r, &value), SRQ_RING_FOUND);
			cr_assert_eq(value, expected++);
		}
	}
	while (take(&r, &value) == SRQ_RING_FOUND)
		cr_assert_eq(value, expected++);
	cr_assert_eq(expected, next);
	cr_assert_eq(srq_ring_waiting(&r), 0);
	free(shared);
}

Test(srq_ring, one_lcore_takes_in_order_across_the_wrap)
{
	in_order(true);
}

Test(srq_ring, takes_are_in_order_across_the_wrap)
{
	in_order(false);
}

/*
 * An lcore is preempted after it has read a slot. Meanwhile another lcore takes every request, and
 * the program posts one for each: it has polled their completions, so each of them must fit.
 */
Test(srq_ring, an_lcore_that_is_preempted_while_it_reads_holds_no_slot)
{
	struct rte_ring *shared = new_ring(SIZE);
	uint64_t next = 0, value, pair[2];
	struct srq_ring_found f;
	struct srq_ring r;

	srq_ring_init(&r, shared, SIZE, STRIDE);
	while (post(shared, next))
		next++;
	cr_assert_eq(srq_ring_find(&r, &f), SRQ_RING_FOUND);
	copy_pair(pair, &f);
	for (uint64_t i = 0; i < 3 * SIZE; i++) {
		cr_assert_eq(take(&r, &value), SRQ_RING_FOUND);
		cr_assert_eq(value, i);
		cr_assert(post(shared, next++), "no room after %u requests were taken",
			  (uint32_t)i + 1);
	}
	cr_assert_not(srq_ring_take(&r, &f), "one request was taken twice");
	cr_assert_eq(take(&r, &value), SRQ_RING_FOUND);
	cr_assert_eq(value, 3 * SIZE);
	free(shared);
}

/* hostile H-90 */
Test(srq_ring, any_producer_position_is_in_the_ring_or_an_error)
{
	static const uint32_t tails[] = { SIZE, SIZE + 1, 0x80000000u, UINT32_MAX, 1000 };
	struct rte_ring *shared = new_ring(SIZE);
	struct srq_ring_found f;

	for (uint32_t alone = 0; alone < 2; alone++) {
		for (uint32_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
			struct srq_ring r;

			srq_ring_init(&r, shared, SIZE, STRIDE);
			r.one_lcore = alone;
			shared->prod.tail = tails[i];
			cr_assert_eq(srq_ring_waiting(&r), RING_BROKEN);
			cr_assert_eq(srq_ring_find(&r, &f), SRQ_RING_ILL);
		}
	}
	free(shared);
}

/* hostile H-90 */
Test(srq_ring, a_forged_consumer_tail_blocks_no_lcore)
{
	struct rte_ring *shared = new_ring(SIZE);
	struct srq_ring_found f;
	struct srq_ring r;
	uint64_t value;

	srq_ring_init(&r, shared, SIZE, STRIDE);
	for (uint64_t i = 0; i < 5; i++) {
		shared->prod.tail++;
		shared->cons.tail = 0x70000000u + (uint32_t)i;
		memset(shared + 1, 0xff, STRIDE); /* the contents of slots do not matter here */
		cr_assert_eq(srq_ring_find(&r, &f), SRQ_RING_FOUND);
		cr_assert(srq_ring_take(&r, &f));
	}
	cr_assert_eq(take(&r, &value), SRQ_RING_EMPTY);
	free(shared);
}

/* ---- several lcores ---- */

static struct srq_ring met;
static struct rte_ring *met_shared;
static volatile sig_atomic_t meetings;

/* Another lcore takes a request, and the program posts one more: the ring is as full as before. */
static void meet(int signal)
{
	uint64_t value;

	meetings++;
	mprotect(met_shared, ring_bytes(SIZE, STRIDE), PROT_READ | PROT_WRITE);
	cr_assert_eq(take(&met, &value), SRQ_RING_FOUND);
	cr_assert_eq(value, 0);
	cr_assert(post(met_shared, SIZE - 1));
}

/*
 * An lcore has read its own head. Then the producer's tail moves by more than the ring has slots from there. The lcore
 * reads it in a page that is not accessible, so this happens between the two reads.
 */
Test(srq_ring, a_take_that_others_overtook_takes_the_next, .timeout = 10)
{
	struct sigaction action = { .sa_handler = meet, .sa_flags = SA_RESETHAND };
	size_t octets = ring_bytes(SIZE, STRIDE);
	uint64_t value;

	met_shared = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)met_shared, MAP_FAILED);
	ring_format(met_shared, SIZE, false);
	srq_ring_init(&met, met_shared, SIZE, STRIDE);
	for (uint64_t i = 0; i < SIZE - 1; i++)
		cr_assert(post(met_shared, i));
	cr_assert_eq(sigaction(SIGSEGV, &action, NULL), 0);
	cr_assert_eq(mprotect(met_shared, octets, PROT_NONE), 0);
	for (uint64_t i = 1; i < SIZE; i++) {
		cr_assert_eq(take(&met, &value), SRQ_RING_FOUND);
		cr_assert_eq(value, i);
	}
	cr_assert_eq(meetings, 1);
	cr_assert_eq(take(&met, &value), SRQ_RING_EMPTY);
	munmap(met_shared, octets);
}

struct lcore {
	pthread_t thread;
	struct srq_ring *ring;
	uint8_t *seen; /* LCORES * EACH */
	const uint64_t
		*posted; /* each is written before its request is posted, and read after a take */
	uint32_t *left; /* atomic */
};

static void *lcore_takes(void *argument)
{
	struct lcore *l = argument;

	while (__atomic_load_n(l->left, __ATOMIC_RELAXED) != 0) {
		struct srq_ring_found f;
		uint64_t pair[2];

		if (srq_ring_find(l->ring, &f) != SRQ_RING_FOUND) {
			sched_yield();
			continue;
		}
		copy_pair(pair, &f);
		if (!srq_ring_take(l->ring, &f))
			continue;
		if (!is_whole(pair) || l->posted[pair[0]] != pair[0])
			return (void *)1;
		__atomic_fetch_add(&l->seen[pair[0]], 1, __ATOMIC_RELAXED);
		__atomic_fetch_sub(l->left, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * hostile H-133: both sides at once. Slots are written and read by atomics without an order, because an
 * lcore that others overtake reads what is being written. `posted` is not, so the thread sanitizer
 * sees whether a post comes before the take.
 */
Test(srq_ring, several_lcores_take_each_request_once, .timeout = 200)
{
	struct rte_ring *shared = new_ring(64);
	uint32_t total = LCORES * EACH, left = total;
	uint8_t *seen = calloc(total, 1);
	uint64_t *posted = calloc(total, sizeof(*posted));
	struct lcore lcore[LCORES];
	struct srq_ring r;

	srq_ring_init(&r, shared, 64, STRIDE);
	for (uint32_t i = 0; i < LCORES; i++) {
		lcore[i] =
			(struct lcore){ .ring = &r, .seen = seen, .left = &left, .posted = posted };
		cr_assert_eq(pthread_create(&lcore[i].thread, NULL, lcore_takes, &lcore[i]), 0);
	}
	for (uint64_t value = 0; value < total;) {
		posted[value] = value;
		if (post(shared, value))
			value++;
		else
			sched_yield();
	}
	for (uint32_t i = 0; i < LCORES; i++) {
		void *torn;

		pthread_join(lcore[i].thread, &torn);
		cr_assert_null(torn, "a slot was given back while it was read");
	}
	for (uint32_t i = 0; i < total; i++)
		cr_assert_eq(seen[i], 1, "request %u was taken %u times", i, seen[i]);
	cr_assert_eq(shared->cons.tail, total);
	free(posted);
	free(seen);
	free(shared);
}
