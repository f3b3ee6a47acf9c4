/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues that owe an event while one of them goes. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ring.h>

#include "loop_rig.h"
#include "protocol/command.h"

#define QUEUES	  4u
#define PERIOD_US 1000u

static struct rig *r;
static struct engine_channel channel;
static int events;

static struct engine_cq *queue(uint32_t i)
{
	return &r->side[i].send_cq;
}

static void begin(void)
{
	int fd[2];

	r = rig_open();
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
	channel.fd = fd[0];
	events = fd[1];
	for (uint32_t i = 0; i < QUEUES; i++) {
		queue(i)->channel = &channel;
		queue(i)->cookie = i;
		moderate_set(queue(i), 100, PERIOD_US);
	}
}

static void end(void)
{
	close(channel.fd);
	close(events);
	rig_close(r);
}

TestSuite(moderate, .init = begin, .fini = end, .timeout = 60);

static uint32_t count_events(void)
{
	struct channel_message m;
	uint32_t n = 0;

	while (recv(events, &m, sizeof(m), 0) == (ssize_t)sizeof(m))
		n++;
	return n;
}

/* With a count and no period the event comes with that completion, whenever that is. */
Test(moderate, a_count_alone_is_waited_for)
{
	struct lcore *l = r->engine.lcore;
	nanotime now = clock_now();

	moderate_set(queue(0), 3, 0);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 2; i++)
			moderate_completion(l, queue(0), i == 0, now);
		moderate_poll(l, now + 10 * TIME_S);
		cr_expect_eq(count_events(), 0);
		moderate_completion(l, queue(0), false, now);
		cr_expect_eq(count_events(), 1);
	}
	moderate_completion(l, queue(0), false, now);
	cr_expect_eq(queue(0)->moderation.waiting, 0, "nobody waits for an event");
}

Test(moderate, without_limits_each_event_comes_at_once)
{
	moderate_set(queue(0), 0, 0);
	moderate_completion(r->engine.lcore, queue(0), true, clock_now());
	cr_expect_eq(count_events(), 1);
}

/* Another lcore's work between the two steps in which an event is paid. */
static struct engine_cq *completes_meanwhile;

ssize_t __real_send(int fd, const void *octets, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *octets, size_t n, int flags);

ssize_t __wrap_send(int fd, const void *octets, size_t n, int flags)
{
	struct engine_cq *cq = completes_meanwhile;

	completes_meanwhile = NULL;
	if (cq != NULL)
		moderate_completion(r->engine.lcore, cq, true, clock_now());
	return __real_send(fd, octets, n, flags);
}

/* A completion finds its queue listed, which leaves the list just then. */
Test(moderate, what_completes_while_an_event_is_sent_is_not_forgotten)
{
	struct lcore *l = r->engine.lcore;

	moderate_completion(l, queue(0), true, clock_now());
	completes_meanwhile = queue(0);
	moderate_poll(l, clock_now() + 2 * PERIOD_US * TIME_US);
	cr_expect_eq(count_events(), 1);
	cr_expect_neq(moderate_next(l), TIME_NEVER, "nobody looks at it");
	moderate_poll(l, clock_now() + 2 * PERIOD_US * TIME_US);
	cr_expect_eq(count_events(), 1);
	cr_expect(TAILQ_EMPTY(&l->moderated));
}

static void complete(struct engine_cq *cq)
{
	struct completion c = { .wr_id = 1 };

	cq_complete(r->engine.lcore, NULL, cq, &c, clock_now());
}

/* Another lcore's work when this one has taken the program's arming, and has not counted yet. */
static struct engine_cq *overtakes;

bool __real_cq_ring_take_arming(struct cq_ring *c, bool solicited);
bool __wrap_cq_ring_take_arming(struct cq_ring *c, bool solicited);

bool __wrap_cq_ring_take_arming(struct cq_ring *c, bool solicited)
{
	bool taken = __real_cq_ring_take_arming(c, solicited);
	struct engine_cq *cq = overtakes;

	overtakes = NULL;
	if (cq != NULL)
		complete(cq);
	return taken;
}

/* The program waits for three completions. The second one finds that no event is owed yet. */
Test(moderate, a_count_alone_misses_no_completion)
{
	struct engine_cq *cq = queue(0);

	moderate_set(cq, 3, 0);
	cq_ring_arm(cq_rings_now(&cq->rings)->page, CQ_ARMED_NEXT);
	overtakes = cq;
	complete(cq);
	cr_expect_eq(count_events(), 0);
	complete(cq);
	cr_expect_eq(count_events(), 1, "the program waits for ever");
}

static uint32_t forgotten; /* atomic */

static void *forget(void *cq)
{
	moderate_forget(cq);
	__atomic_store_n(&forgotten, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* The queues whose events came, a bit each. */
static uint32_t events_of(void)
{
	struct channel_message m;
	uint32_t seen = 0;

	while (recv(events, &m, sizeof(m), 0) == (ssize_t)sizeof(m))
		seen |= 1u << m.cookie;
	return seen;
}

/* The lcore looks at its list between the request to forget one of it and that message. */
Test(moderate, a_queue_that_goes_takes_none_of_others_along)
{
	struct lcore *l = r->engine.lcore;
	nanotime now = clock_now();

	for (uint32_t gone = 0; gone < QUEUES; gone++) {
		pthread_t control;

		for (uint32_t i = 0; i < QUEUES; i++)
			moderate_completion(l, queue(i), true, now);
		cr_assert(lcore_sit(l));
		cr_assert_eq(pthread_create(&control, NULL, forget, queue(gone)), 0);
		while (rte_ring_empty(l->messages))
			usleep(100);
		cr_assert_eq(moderate_poll(l, now), 0, "nothing is due");
		messages_poll(l, now);
		lcore_rise(l);
		pthread_join(control, NULL);
		now += PERIOD_US * TIME_US;
		moderate_poll(l, now);
		cr_expect_eq(events_of(), ((1u << QUEUES) - 1) & ~(1u << gone), "without %u", gone);
		cr_expect(TAILQ_EMPTY(&l->moderated), "without %u", gone);
	}
}

/* An lcore that has taken a queue out of its list still looks at it: the queue may not go yet. */
Test(moderate, a_queue_goes_when_its_lcore_is_done_with_it)
{
	struct lcore *l = r->engine.lcore;
	nanotime now = clock_now();
	pthread_t control;

	moderate_completion(l, queue(0), true, now);
	cr_assert(lcore_sit(l));
	cr_assert_eq(moderate_poll(l, now + PERIOD_US * TIME_US), 1);
	cr_assert(TAILQ_EMPTY(&l->moderated));
	cr_assert_eq(pthread_create(&control, NULL, forget, queue(0)), 0);
	while (rte_ring_empty(l->messages) && !__atomic_load_n(&forgotten, __ATOMIC_ACQUIRE))
		usleep(100);
	cr_expect_not(__atomic_load_n(&forgotten, __ATOMIC_ACQUIRE),
		      "the lcore is in the middle of its round");
	messages_poll(l, now);
	lcore_rise(l);
	pthread_join(control, NULL);
}
