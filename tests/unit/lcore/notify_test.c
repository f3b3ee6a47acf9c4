/* SPDX-License-Identifier: BSD-3-Clause */
/* Events to programs: none is lost in a socket that is full, none comes twice, none overtakes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop_rig.h"
#include "protocol/command.h"

#define EVENT_CQ_ERR	 0u
#define EVENT_QP_FATAL	 1u
#define EVENT_SQ_DRAINED 5u
#define FILLER		 99u /* what fills a socket */

static struct rig *r;
static struct lcore *l;
static int engine_fd, program_fd;

static void begin(void)
{
	int fd[2];

	r = rig_open();
	l = r->engine.lcore;
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
	engine_fd = fd[0];
	program_fd = fd[1];
}

static void end(void)
{
	close(engine_fd);
	close(program_fd);
	rig_close(r);
}

TestSuite(notify, .init = begin, .fini = end, .timeout = 60);

static void fill_socket(void)
{
	const struct async_message m = { .event = FILLER };

	while (send(engine_fd, &m, sizeof(m), MSG_DONTWAIT) == (ssize_t)sizeof(m))
		continue;
	cr_assert(errno == EAGAIN || errno == ENOBUFS);
}

static void empty_socket(void)
{
	struct async_message m;

	while (recv(program_fd, &m, sizeof(m), 0) == (ssize_t)sizeof(m))
		cr_expect_eq(m.event, FILLER);
}

static void expect_event(uint32_t event, uint32_t object, uint64_t cookie)
{
	struct async_message m;

	cr_assert_eq(recv(program_fd, &m, sizeof(m), 0), (ssize_t)sizeof(m), "event %u is missing",
		     event);
	cr_expect_eq(m.event, event);
	cr_expect_eq(m.object, object);
	cr_expect_eq(m.cookie, cookie);
}

static void expect_no_event(void)
{
	struct async_message m;

	cr_expect_lt(recv(program_fd, &m, sizeof(m), 0), 0, "event %u", m.event);
}

/* ---- of completions ---- */

static struct engine_channel channel;

static struct engine_cq *queue(void)
{
	struct engine_cq *cq = &r->side[0].send_cq;

	channel.fd = engine_fd;
	cq->channel = &channel;
	cq->cookie = 7;
	return cq;
}

Test(notify, an_event_that_finds_no_room_is_owed_until_it_is_sent)
{
	struct engine_cq *cq = queue();

	fill_socket();
	cr_expect_not(cq_send_event(cq));
	cr_expect_eq(cq->event_owed, 1);
	cr_expect_eq(cq->events, 0);
	empty_socket();
	cr_expect(cq_send_event(cq));
	cr_expect_eq(cq->event_owed, 0);
	cr_expect_eq(cq->events, 1);
}

/*
 * The queue whose event has just left, while the thread that sent it is preempted: the program takes
 * the event and arms the queue again, and the next event finds the socket full of others' events.
 */
static struct engine_cq *owes_the_next;

ssize_t __real_send(int fd, const void *octets, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *octets, size_t n, int flags);

ssize_t __wrap_send(int fd, const void *octets, size_t n, int flags)
{
	ssize_t sent = __real_send(fd, octets, n, flags);
	struct engine_cq *cq = owes_the_next;
	struct channel_message m;

	owes_the_next = NULL;
	if (cq == NULL)
		return sent;
	cr_assert_eq(recv(program_fd, &m, sizeof(m), 0), (ssize_t)sizeof(m));
	fill_socket();
	cr_expect_not(cq_send_event(cq), "another lcore's");
	return sent;
}

Test(notify, an_event_that_was_sent_does_not_hide_the_next_one)
{
	struct engine_cq *cq = queue();

	owes_the_next = cq;
	cr_expect(cq_send_event(cq));
	cr_expect_eq(cq->events, 1);
	cr_expect_eq(cq->event_owed, 1, "the next one is lost");
}

Test(notify, nothing_is_owed_to_a_program_that_is_gone)
{
	struct engine_cq *cq = queue();

	shutdown(program_fd, SHUT_RDWR);
	cr_expect_not(cq_send_event(cq));
	cr_expect_eq(cq->event_owed, 0);
}

/* ---- asynchronous ones ---- */

static struct engine_qp *qp(uint32_t side)
{
	struct engine_qp *q = &r->side[side].qp;

	q->async_fd = engine_fd;
	q->cookie = 10 + side;
	return q;
}

Test(notify, events_wait_behind_one_that_is_owed)
{
	struct owed_round round = { .full_fd = -1 };
	struct engine_qp *q = qp(0);

	fill_socket();
	qp_raise(l, q, QP_EVENT_SQ_DRAINED);
	cr_expect_eq(r->client.async_owed, 1);
	empty_socket();
	qp_raise(l, q, QP_EVENT_FATAL);
	expect_no_event();
	cr_expect_eq(q->async_events, 0);
	qp_tell_owed(q, &round);
	cr_expect(round.told);
	expect_event(EVENT_QP_FATAL, 1, 10);
	expect_event(EVENT_SQ_DRAINED, 1, 10);
	expect_no_event();
	cr_expect_eq(q->async_events, 2);
	qp_tell_owed(q, &round);
	expect_no_event();
	qp_raise(l, q, QP_EVENT_FATAL);
	expect_event(EVENT_QP_FATAL, 1, 10);
}

/* Its other objects keep theirs, and the program is asked again. */
Test(notify, a_full_socket_is_tried_once_a_round)
{
	struct owed_round round = { .full_fd = -1 };

	fill_socket();
	qp_raise(l, qp(0), QP_EVENT_SQ_DRAINED);
	qp_raise(l, qp(1), QP_EVENT_SQ_DRAINED);
	r->client.async_owed = 0;
	qp_tell_owed(qp(0), &round);
	cr_expect_eq(round.full_fd, engine_fd);
	cr_expect_eq(r->client.async_owed, 1);
	empty_socket();
	qp_tell_owed(qp(1), &round);
	expect_no_event();
	cr_expect_not(round.told);
	round.full_fd = -1;
	qp_tell_owed(qp(0), &round);
	qp_tell_owed(qp(1), &round);
	expect_event(EVENT_SQ_DRAINED, 1, 10);
	expect_event(EVENT_SQ_DRAINED, 1, 11);
	expect_no_event();
}

/* ---- overruns ---- */

/* This many completions of this queue pair, unsolicited. */
static void complete(struct engine_qp *q, struct engine_cq *cq, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct completion c = { .work_index = i };

		cq_complete(l, q, cq, &c, clock_now());
	}
}

Test(notify, an_overrun_is_told_once_and_ends_each_queue_pair)
{
	struct engine_cq *cq = &r->side[0].send_cq;
	uint32_t room = cq_rings_now(&cq->rings)->capacity;

	cq->async_fd = engine_fd;
	cq->cookie = 5;
	complete(qp(0), cq, room);
	expect_no_event();
	cr_expect_eq(qp_state(qp(0)->core), QP_STATE_RTS);
	complete(qp(0), cq, 1);
	expect_event(EVENT_CQ_ERR, 2, 5);
	cr_expect_eq(qp_state(qp(0)->core), QP_STATE_ERR);
	cr_expect_eq(qp_state(qp(1)->core), QP_STATE_RTS);
	complete(qp(1), cq, 1);
	expect_no_event();
	cr_expect_eq(qp_state(qp(1)->core), QP_STATE_ERR);
	complete(NULL, cq, 1);
	expect_no_event();
	cr_expect_eq(l->stats.by_reason[REASON_CQ_OVERRUN], 3);
}

/* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN */
Test(notify, an_overrun_that_is_ignored_ends_nobody)
{
	struct engine_cq *cq = &r->side[0].send_cq;

	cq->async_fd = engine_fd;
	cq->ignores_overrun = true;
	complete(qp(0), cq, cq_rings_now(&cq->rings)->capacity + 2);
	expect_no_event();
	cr_expect_eq(qp_state(qp(0)->core), QP_STATE_RTS);
	cr_expect_eq(l->stats.by_reason[REASON_CQ_OVERRUN], 2);
}
