/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/cq_ring.h"
#include "queue/ring.h"
#include "queue/ring_client.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define STRIDE ((uint32_t)sizeof(struct completion))
#define LCORES 4u
#define EACH   20000u

struct cq {
	struct rte_ring *ring;
	struct cq_page page;
	struct cq_ring side;
	int event_fd;
	uint32_t solicited_every; /* every n-th completion is solicited */
};

static struct cq *new_cq(uint32_t size, uint32_t capacity)
{
	struct cq *q = calloc(1, sizeof(*q));

	cr_assert_not_null(q);
	q->ring = aligned_alloc(64, ring_bytes(size, STRIDE));
	cr_assert_not_null(q->ring);
	memset(q->ring, 0, ring_bytes(size, STRIDE));
	ring_format(q->ring, size, false);
	cq_ring_init(&q->side, q->ring, &q->page, size, capacity);
	q->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	cr_assert_geq(q->event_fd, 0);
	return q;
}

static void free_cq(struct cq *q)
{
	close(q->event_fd);
	free(q->ring);
	free(q);
}

static void fill_up(uint32_t size, uint32_t capacity, bool one_lcore)
{
	struct cq *q = new_cq(size, capacity);
	struct completion c = { .wr_id = 0 };

	q->side.one_lcore = one_lcore;
	for (uint64_t round = 0; round < 10; round++) {
		for (uint64_t i = 0; i < capacity; i++) {
			c.wr_id = round * capacity + i;
			cr_assert(cq_ring_push(&q->side, &c));
		}
		cr_assert_not(cq_ring_push(&q->side, &c), "the capacity is the announced one");
		for (uint64_t i = 0; i < capacity; i++) {
			const struct completion *seen = ring_client_peek(q->ring, STRIDE);

			cr_assert_not_null(seen);
			cr_assert_eq(seen->wr_id, round * capacity + i);
			ring_client_release(q->ring, 1);
		}
		cr_assert_null(ring_client_peek(q->ring, STRIDE));
	}
	free_cq(q);
}

Test(cq_ring, fills_to_its_capacity_and_wraps)
{
	fill_up(8, 5, false);
	fill_up(8, 5, true);
	fill_up(2, 1, false); /* the smallest */
	fill_up(2, 1, true);
}

/* hostile H-91: forged positions in a completion queue. */
Test(cq_ring, a_forged_consumer_tail_is_an_overrun)
{
	static const uint32_t tails[] = { 1, 8, 0x7fffffff, 0x80000000, UINT32_MAX - 10 };
	struct completion c = { 0 };

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct cq *q = new_cq(8, 7);

		q->ring->cons.tail = tails[i];
		cr_assert_not(cq_ring_push(&q->side, &c));
		free_cq(q);
	}
}

/* hostile H-91: forged positions in a completion queue. An lcore that is alone looks only when its ring seems full. */
Test(cq_ring, a_forged_consumer_tail_ends_in_an_overrun_if_one_lcore_completes)
{
	static const uint32_t tails[] = { 1, 8, 0x7fffffff, 0x80000000, UINT32_MAX - 10 };
	struct completion c = { 0 };

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct cq *q = new_cq(8, 7);
		uint32_t pushed = 0;

		q->side.one_lcore = true;
		q->ring->cons.tail = tails[i];
		while (pushed < 100 && cq_ring_push(&q->side, &c))
			pushed++;
		cr_expect_eq(pushed, tails[i] == 1 ? 8 : 7, "%u with a tail of %u", pushed,
			     tails[i]);
		cr_expect_eq(q->ring->prod.tail, pushed);
		free_cq(q);
	}
}

/* The program's tail is in a line of its core, so an lcore that is alone looks at it once in a round of the ring. */
Test(cq_ring, one_lcore_looks_at_the_consumer_when_it_has_to)
{
	struct cq *q = new_cq(8, 7);
	struct completion c = { 0 };

	q->side.one_lcore = true;
	for (uint32_t i = 0; i < 7; i++) {
		q->ring->cons.tail = i;
		cr_assert(cq_ring_push(&q->side, &c));
		cr_assert_eq(q->side.taken, 0);
	}
	cr_assert(cq_ring_push(&q->side, &c));
	cr_assert_eq(q->side.taken, 6);
	free_cq(q);
}

/* hostile H-91: forged positions in a completion queue. */
Test(cq_ring, a_forged_producer_tail_stops_no_lcore)
{
	struct cq *q = new_cq(8, 7);
	struct completion c = { 0 };

	for (uint32_t i = 0; i < 7; i++) {
		q->ring->prod.tail = 0x1234567 * i;
		cr_assert(cq_ring_push(&q->side, &c));
	}
	cr_assert_not(cq_ring_push(&q->side, &c));
	free_cq(q);
}

Test(cq_ring, an_arming_is_taken_once_and_only_by_what_satisfies_it)
{
	struct cq *q = new_cq(8, 7);

	cr_assert_not(cq_ring_take_arming(&q->side, true));
	cq_ring_arm(&q->page, CQ_ARMED_SOLICITED);
	cr_assert_not(cq_ring_take_arming(&q->side, false));
	cr_assert(cq_ring_take_arming(&q->side, true));
	cr_assert_not(cq_ring_take_arming(&q->side, true));
	cq_ring_arm(&q->page, CQ_ARMED_NEXT);
	cq_ring_arm(&q->page, CQ_ARMED_SOLICITED);
	cr_assert(cq_ring_take_arming(&q->side, false), "the stronger request stays");
	q->page.armed = 77;
	cr_assert_not(cq_ring_take_arming(&q->side, true), "an undefined value");
	free_cq(q);
}

/* A CQ that took so many completions, none of them solicited. All were polled. */
static struct cq *new_cq_after(uint32_t completions)
{
	struct cq *q = new_cq(8, 7);

	q->side.head = q->side.tail = UINT64_C(1) << 32 | completions;
	q->ring->prod.tail = q->ring->cons.tail = completions;
	return q;
}

static void expect_a_late_wake_after(uint32_t completions)
{
	struct cq *q = new_cq_after(completions);
	struct completion plain = { .wr_id = 1 }, solicited = { .wr_id = 2, .solicited = 1 };

	cq_ring_arm(&q->page, CQ_ARMED_SOLICITED);
	/* another lcore has reserved the next position and was preempted: one push has begun */
	q->side.head += 1 + (UINT64_C(1) << 32);
	cr_assert(cq_ring_push(&q->side, &solicited));
	cr_assert_null(ring_client_peek(q->ring, STRIDE), "it is behind an unwritten slot");
	/* our lcore asks too early: the program gets an event, finds nothing and arms again */
	cr_assert(cq_ring_take_arming(&q->side, true));
	cq_ring_arm(&q->page, CQ_ARMED_SOLICITED);
	cr_assert_null(ring_client_peek(q->ring, STRIDE));
	/* the other lcore goes on: it writes its slot and finishes last */
	memcpy(ring_client_slot(q->ring, completions, STRIDE), &plain, sizeof(plain));
	q->side.tail = q->side.head; /* both pushes finished */
	__atomic_store_n(&q->ring->prod.tail, (uint32_t)q->side.tail, __ATOMIC_RELEASE);
	cr_assert(cq_ring_take_arming(&q->side, false),
		  "the solicited one became visible now, after %u others", completions);
	cr_assert_eq(((const struct completion *)ring_client_peek(q->ring, STRIDE))->wr_id, 1);
	cr_assert_not(cq_ring_take_arming(&q->side, false), "once");
	free_cq(q);
}

/* An unfinished push of another lcore hides ours. The lcore that shows it must send the event. */
Test(cq_ring, a_hidden_solicited_completion_wakes_when_it_is_shown)
{
	expect_a_late_wake_after(0);
}

/* However many completions came since the last solicited one, whose position is modulo 2^32. */
Test(cq_ring, a_hidden_solicited_completion_wakes_after_many_others)
{
	expect_a_late_wake_after(0x80000010);
	expect_a_late_wake_after(UINT32_MAX - 1); /* then it is where the last one was */
}

static struct cq *behind; /* its lcore has read the head, and is about to read the program's tail */

/* Another lcore completes a request, and the program polls that completion. */
static void overtake(int signal_number)
{
	struct completion c = { .wr_id = 1 };

	(void)signal_number;
	mprotect(behind->ring, ring_bytes(8, STRIDE), PROT_READ | PROT_WRITE);
	if (!cq_ring_push(&behind->side, &c) || ring_client_peek(behind->ring, STRIDE) == NULL)
		_exit(1);
	ring_client_release(behind->ring, 1);
}

/*
 * The head that an lcore has read may be old when it reads how far the program has polled. The
 * memory of the ring cannot be read at first, so the other lcore and the program are exactly
 * between the two.
 */
Test(cq_ring, an_lcore_that_is_overtaken_finds_room)
{
	const struct sigaction fault = { .sa_handler = overtake };
	const struct completion *seen;
	struct completion c = { .wr_id = 2 };
	struct cq q = { 0 };

	q.ring = mmap(NULL, ring_bytes(8, STRIDE), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(q.ring, MAP_FAILED);
	ring_format(q.ring, 8, false);
	cq_ring_init(&q.side, q.ring, &q.page, 8, 7);
	behind = &q;
	cr_assert_eq(sigaction(SIGSEGV, &fault, NULL), 0);
	cr_assert_eq(mprotect(q.ring, ring_bytes(8, STRIDE), PROT_NONE), 0);
	cr_assert(cq_ring_push(&q.side, &c), "the queue is empty");
	seen = ring_client_peek(q.ring, STRIDE);
	cr_assert_not_null(seen);
	cr_assert_eq(seen->wr_id, 2);
	cr_assert_eq(q.ring->cons.tail, 1, "the other lcore was there");
	munmap(q.ring, ring_bytes(8, STRIDE));
}

struct lcore {
	struct cq *q;
	uint32_t number;
};

static void *complete(void *arg)
{
	struct lcore *l = arg;
	const uint64_t one = 1;

	for (uint32_t i = 0; i < EACH; i++) {
		struct completion c = { .wr_id = i, .qp_num = l->number };

		c.solicited = (i + 1) % l->q->solicited_every == 0;
		while (!cq_ring_push(&l->q->side, &c))
			sched_yield();
		if (cq_ring_take_arming(&l->q->side, c.solicited))
			cr_assert_eq(write(l->q->event_fd, &one, sizeof(one)),
				     (ssize_t)sizeof(one));
	}
	return NULL;
}

/* Polls until the CQ is empty and checks the order of each lcore's completions. */
static uint32_t poll_all(struct cq *q, uint64_t *next, uint32_t *solicited)
{
	const struct completion *c;
	uint32_t n = 0;

	while ((c = ring_client_peek(q->ring, STRIDE)) != NULL) {
		cr_assert_lt(c->qp_num, LCORES);
		cr_assert_eq(c->wr_id, next[c->qp_num]++);
		*solicited += c->solicited;
		ring_client_release(q->ring, 1);
		n++;
	}
	return n;
}

static void wait_event(struct cq *q, uint32_t total)
{
	struct pollfd p = { .fd = q->event_fd, .events = POLLIN };
	uint64_t count;

	cr_assert_eq(poll(&p, 1, 10000), 1, "no event came: %u of %u completions seen", total,
		     LCORES * EACH);
	cr_assert_gt(read(q->event_fd, &count, sizeof(count)), 0);
}

static void consume_by_events(enum cq_armed how, uint32_t solicited_every)
{
	struct cq *q = new_cq(1024, 1000);
	struct lcore lcore[LCORES];
	pthread_t thread[LCORES];
	uint64_t next[LCORES] = { 0 };
	uint32_t total = 0, solicited = 0;

	q->solicited_every = solicited_every;
	for (uint32_t i = 0; i < LCORES; i++) {
		lcore[i] = (struct lcore){ .q = q, .number = i };
		cr_assert_eq(pthread_create(&thread[i], NULL, complete, &lcore[i]), 0);
	}
	while (total < LCORES * EACH) {
		uint32_t n;

		cq_ring_arm(&q->page, how);
		n = poll_all(q, next, &solicited);
		total += n;
		if (n == 0)
			wait_event(q, total);
	}
	for (uint32_t i = 0; i < LCORES; i++) {
		pthread_join(thread[i], NULL);
		cr_assert_eq(next[i], EACH);
	}
	free_cq(q);
}

/* hostile H-133: both sides at once; H-134: arming while completions come. */
Test(cq_ring, four_lcores_lose_neither_completions_nor_events, .timeout = 200)
{
	consume_by_events(CQ_ARMED_NEXT, 1000000);
}

/*
 * Any 997 completions fit the CQ and contain a solicited one, so waiting only for those must
 * suffice. hostile H-134: arming while completions come.
 */
Test(cq_ring, four_lcores_lose_no_solicited_event, .timeout = 200)
{
	consume_by_events(CQ_ARMED_SOLICITED, 20);
}
