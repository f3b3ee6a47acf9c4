/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues that owe an event while one of them goes. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

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

static void *forget(void *cq)
{
	moderate_forget(cq);
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
