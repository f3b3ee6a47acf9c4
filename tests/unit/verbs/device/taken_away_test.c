/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a destroying verb does with events of its object that the program has not fetched: they leave
 * before it waits for acknowledgements, and only from the library's own descriptor. Runs with an
 * engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/command.h"
#include "rig/endpoint.h"
#include "rig/waiting.h"

static struct endpoint e;
static struct ibv_cq *cq; /* of e.channel */
static struct ibv_srq *srq;
static struct ibv_qp *qp; /* of both, connected to itself */

static void begin(void)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .cap = { 4, 0, 1, 0, 0 }, .qp_type = IBV_QPT_RC };

	endpoint_open(&e);
	cq = init.send_cq = init.recv_cq = ibv_create_cq(e.context, 16, NULL, e.channel, 0);
	srq = init.srq = ibv_create_srq(e.pd, &srq_init);
	cr_assert(cq != NULL && srq != NULL, "%m");
	qp = ibv_create_qp(e.pd, &init);
	cr_assert_not_null(qp, "%m");
	cr_assert_eq(endpoint_connect(&e, qp, qp->qp_num), 0);
}

TestSuite(taken_away, .init = begin, .timeout = 120);

static int destroy_qp(void *unused)
{
	(void)unused;
	return ibv_destroy_qp(qp);
}

static int destroy_cq(void *unused)
{
	(void)unused;
	return ibv_destroy_cq(cq);
}

static int destroy_srq(void *unused)
{
	(void)unused;
	return ibv_destroy_srq(srq);
}

static bool readable(int fd, int wait_ms)
{
	return poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, wait_ms) == 1;
}

/* An empty message to itself. */
static void send_one(void)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_recv_wr receive = { .num_sge = 0 }, *bad_receive;
	struct ibv_wc wc[2];

	cr_assert_eq(ibv_post_srq_recv(srq, &receive, &bad_receive), 0);
	cr_assert_eq(ibv_post_send(qp, &send, &bad), 0);
	poll_completions(cq, wc, 2, "a message to itself");
}

/* ---- before the wait ---- */

/*
 * The object has one event that was fetched and not acknowledged, and another one that was not
 * fetched. The thread that has to acknowledge may fetch more before: it must not block in that.
 */
static void expect_removed(int (*destroy)(void *unused), struct waiting *w, int fd)
{
	cr_assert(readable(fd, WAIT_SECONDS * 1000), "the second event does not come");
	waiting_begin(w, "the destroying verb", destroy, NULL);
	cr_expect_not(readable(fd, 0), "the event of an object that is being destroyed");
}

static void expect_destroyed(struct waiting *w)
{
	waiting_end(w);
	cr_expect_eq(w->result, 0);
}

static struct ibv_async_event fetch(enum ibv_event_type type)
{
	struct ibv_async_event event;

	cr_assert(readable(e.context->async_fd, WAIT_SECONDS * 1000), "no %s",
		  ibv_event_type_str(type));
	cr_assert_eq(ibv_get_async_event(e.context, &event), 0);
	cr_assert_eq(event.event_type, type, "%s", ibv_event_type_str(event.event_type));
	return event;
}

Test(taken_away, of_a_completion_queue)
{
	struct ibv_cq *of;
	struct waiting w;
	void *context;

	cr_assert_eq(ibv_req_notify_cq(cq, 0), 0);
	send_one();
	cr_assert_eq(ibv_get_cq_event(e.channel, &of, &context), 0);
	cr_assert_eq(ibv_req_notify_cq(cq, 0), 0);
	send_one();
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	expect_removed(destroy_cq, &w, e.channel->fd);
	ibv_ack_cq_events(cq, 1);
	expect_destroyed(&w);
}

static void drain(void)
{
	struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	cr_assert_eq(ibv_modify_qp(qp, &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
}

Test(taken_away, of_a_queue_pair)
{
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_async_event event;
	struct waiting w;

	drain();
	event = fetch(IBV_EVENT_SQ_DRAINED);
	cr_assert_eq(ibv_modify_qp(qp, &rts, IBV_QP_STATE), 0);
	drain();
	expect_removed(destroy_qp, &w, e.context->async_fd);
	ibv_ack_async_event(&event);
	expect_destroyed(&w);
}

static void reach_limit(void)
{
	struct ibv_srq_attr limit = { .srq_limit = 1 };

	cr_assert_eq(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	send_one();
}

Test(taken_away, of_a_shared_receive_queue)
{
	struct ibv_async_event event;
	struct waiting w;

	reach_limit();
	event = fetch(IBV_EVENT_SRQ_LIMIT_REACHED);
	reach_limit();
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	expect_removed(destroy_srq, &w, e.context->async_fd);
	ibv_ack_async_event(&event);
	expect_destroyed(&w);
}

/* ---- from another file ---- */

/*
 * The program has closed the number and has a socket of its own there, which holds a message that
 * could be one of an object that does not exist. Returns the other end.
 */
static int put_socket_at(int fd, const void *message, size_t octets)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	cr_assert_eq(dup2(pair[0], fd), fd);
	close(pair[0]);
	cr_assert_eq(send(pair[1], message, octets, 0), (ssize_t)octets);
	return pair[1];
}

Test(taken_away, nothing_from_a_file_of_the_program)
{
	static const struct async_message async = { .object = 1, .cookie = UINT64_MAX };
	static const struct channel_message completion = { .cookie = UINT64_MAX };
	int (*const destroy[])(void *unused) = { destroy_qp, destroy_cq, destroy_srq };
	int fd[] = { e.context->async_fd, e.channel->fd };

	put_socket_at(fd[0], &async, sizeof(async));
	put_socket_at(fd[1], &completion, sizeof(completion));
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(destroy[i](NULL), 0);
		cr_assert(readable(fd[0], 0), "%d has read from the file at async_fd", i);
		cr_assert(readable(fd[1], 0), "%d has read from the file of the channel", i);
	}
}
