/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs that go along with their connection (CM_MODIFY_QP, CM_CONNECT, CM_ACCEPT). */
#include <errno.h>

#include "cm_rig.h"

#define PORT 7471u

static struct party server, client;

static void open_both(void)
{
	parties_begin(&server, &client);
}

static void close_both(void)
{
	parties_end(&server, &client);
}

TestSuite(control_cm_qp, .init = open_both, .fini = close_both, .timeout = 60);

/* 0 or the reply's errno; *state is as the reply says. */
static int move_qp(struct party *p, uint32_t id, uint32_t qp, uint32_t steps, uint32_t then,
		   uint32_t *state)
{
	struct request_cm_modify_qp q = { .id = id, .qp = qp, .steps = steps, .then = then };
	struct reply_modify_qp r = { .state = UINT32_MAX };
	int error = ask(p->fd, COMMAND_CM_MODIFY_QP, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	*state = r.state;
	return error;
}

static struct qp_attributes query_qp(struct party *p, uint32_t qp)
{
	struct request_handle q = { .handle = qp };
	struct reply_query_qp r;

	cr_assert_eq(ask(p->fd, COMMAND_QUERY_QP, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
	return r.attributes;
}

static int accept_with(uint32_t id, uint32_t qp, uint32_t steps, uint8_t private_length)
{
	struct request_cm_connect q = { .id = id,
					.steps = steps,
					.parameters = { .qp = qp,
							.responder_resources = 2,
							.initiator_depth = 1,
							.private_length = private_length } };
	struct reply_modify_qp r;
	int error = ask(server.fd, COMMAND_CM_ACCEPT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0 && steps != 0)
		cr_expect_eq(r.state, QP_STATE_RTS);
	return error;
}

static int connect_with(uint32_t id, uint32_t qp, uint32_t steps)
{
	struct request_cm_connect q = { .id = id,
					.steps = steps,
					.parameters = { .qp = qp,
							.responder_resources = 4,
							.initiator_depth = 3,
							.retry_count = 5,
							.rnr_retry_count = 6 } };
	struct reply_empty r;

	return ask(client.fd, COMMAND_CM_CONNECT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

Test(control_cm_qp, queue_pairs_go_along)
{
	uint32_t id, state;
	struct reply_cm_event e;
	struct objects ours, theirs;
	struct qp_attributes a;

	listener_at(&server, TCP, PORT, 5);
	id = id_towards(&client, TCP, PORT);
	make_objects(client.fd, &ours);
	make_objects(server.fd, &theirs);
	cr_assert_eq(move_qp(&client, id, ours.qp, CM_QP_INIT, CM_THEN_NOTHING, &state), 0);
	cr_expect_eq(state, QP_STATE_INIT);
	cr_assert_eq(connect_with(id, ours.qp, CM_QP_RTR | CM_QP_RTS), 0);
	cr_expect_eq(query_qp(&client, ours.qp).state, QP_STATE_INIT, "nobody has accepted");
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_expect_eq(accept_with(e.id, theirs.qp, CM_QP_RTR | CM_QP_RTS, 0), EINVAL,
		     "it is not in INIT");
	cr_expect_eq(accept_with(e.id, theirs.qp, CM_QP_ERR, 0), EINVAL);
	cr_expect_eq(query_qp(&server, theirs.qp).state, QP_STATE_RESET);
	cr_assert_eq(accept_with(e.id, theirs.qp, CM_QP_TO_RTS, 0), 0);
	a = query_qp(&server, theirs.qp);
	cr_expect_eq(a.state, QP_STATE_RTS);
	cr_expect_eq(a.max_dest_rd_atomic, 2, "as its program chose");
	cr_expect_eq(a.max_rd_atomic, 1);
	cr_expect_eq(a.access_flags,
		     ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
	expect_event(&client, ESTABLISHED, 0, &e);
	cr_expect_eq(e.parameters.responder_resources, 1, "what the peer offers");
	cr_expect_eq(e.parameters.qpn, query_qp(&client, ours.qp).dest_qpn);
	cr_expect_eq(query_qp(&client, ours.qp).state, QP_STATE_RTS);
	cr_expect_eq(query_qp(&client, ours.qp).max_dest_rd_atomic, 1, "as was agreed");
	expect_event(&server, ESTABLISHED, 0, NULL);
	cr_assert_eq(move_qp(&client, id, ours.qp, CM_QP_ERR, CM_THEN_DISCONNECT, &state), 0);
	cr_expect_eq(state, QP_STATE_ERR);
	expect_event(&server, DISCONNECTED, 0, NULL);
}

/* A queue pair that cannot take the steps when the peer accepts, or is gone by then. */
static void expect_no_start(bool is_gone)
{
	uint32_t id = id_towards(&client, TCP, PORT), state;
	struct reply_cm_event e;
	struct objects ours, theirs;

	listener_at(&server, TCP, PORT, 5);
	make_objects(client.fd, &ours);
	make_objects(server.fd, &theirs);
	cr_assert_eq(move_qp(&client, id, ours.qp, CM_QP_INIT, CM_THEN_NOTHING, &state), 0);
	cr_assert_eq(connect_with(id, ours.qp, CM_QP_RTS), 0, "which cannot follow INIT");
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	if (is_gone)
		cr_assert_eq(ask_handle(client.fd, COMMAND_DESTROY_QP, ours.qp, NULL), 0);
	cr_assert_eq(accept_with(e.id, theirs.qp, CM_QP_TO_RTS, 0), 0);
	expect_event(&client, CONNECT_ERROR, -EINVAL, NULL);
	expect_event(&server, REJECTED, 28, NULL);
	if (!is_gone)
		cr_expect_eq(query_qp(&client, ours.qp).state, QP_STATE_ERR);
}

Test(control_cm_qp, a_queue_pair_that_cannot_start)
{
	expect_no_start(false);
}

Test(control_cm_qp, a_queue_pair_that_is_gone_before_it_starts)
{
	expect_no_start(true);
}

Test(control_cm_qp, queue_pairs_that_cannot_go_along)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 5);
	uint32_t id = id_towards(&client, TCP, PORT), state;
	struct reply_cm_event e;
	struct objects ours, theirs;

	make_objects(client.fd, &ours);
	make_objects(server.fd, &theirs);
	cr_expect_eq(move_qp(&client, id, ours.qp, 0, CM_THEN_NOTHING, &state), EINVAL);
	cr_expect_eq(move_qp(&client, id, ours.qp, 16, CM_THEN_NOTHING, &state), EINVAL);
	cr_expect_eq(move_qp(&client, id, ours.qp, CM_QP_INIT, 3, &state), EINVAL);
	cr_expect_eq(move_qp(&client, id, UINT32_MAX, CM_QP_INIT, 0, &state), EINVAL);
	cr_expect_eq(move_qp(&client, UINT32_MAX, ours.qp, CM_QP_INIT, 0, &state), EINVAL);
	cr_expect_eq(move_qp(&server, listener, theirs.qp, CM_QP_RTR, 0, &state), EINVAL);
	cr_expect_eq(move_qp(&client, id, ours.qp, CM_QP_ERR, CM_THEN_DISCONNECT, &state), EINVAL,
		     "there is no connection");
	cr_expect_eq(connect_with(id, ours.qp, CM_QP_ERR), EINVAL);
	cr_expect_eq(connect_with(id, ours.qp, 16), EINVAL);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123, NULL), 0);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_expect_eq(accept_with(e.id, ours.qp + 100, CM_QP_INIT, 0), EINVAL);
	cr_expect_eq(accept_with(e.id, theirs.qp, CM_QP_TO_RTS, 197), EINVAL,
		     "too much private data");
	cr_expect_eq(query_qp(&server, theirs.qp).state, QP_STATE_ERR);
}
