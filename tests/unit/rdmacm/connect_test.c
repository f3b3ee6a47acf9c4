/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between ids of one process. Runs with an engine at $UROCE_SOCKET. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../verbs/rig/waiting.h"
#include "rig.h"

TestSuite(connect, .timeout = 60);

static void send_and_receive(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	char out[64] = "what one says", in[64] = "";
	struct ibv_mr *mr_out = rdma_reg_msgs(from, out, sizeof(out));
	struct ibv_mr *mr_in = rdma_reg_msgs(to, in, sizeof(in));
	struct ibv_wc wc;

	cr_assert(mr_out != NULL && mr_in != NULL);
	cr_assert_eq(rdma_post_recv(to, in, in, sizeof(in), mr_in), 0);
	cr_assert_eq(rdma_post_send(from, out, out, sizeof(out), mr_out, 0), 0);
	cr_assert_eq(rdma_get_send_comp(from, &wc), 1);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(wc.wr_id, (uintptr_t)out);
	cr_assert_eq(rdma_get_recv_comp(to, &wc), 1);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(wc.wr_id, (uintptr_t)in);
	cr_expect_str_eq(in, out);
	rdma_dereg_mr(mr_out);
	rdma_dereg_mr(mr_in);
}

Test(connect, two_ids_exchange_data_and_disconnect)
{
	struct connection c;

	connection_open(&c);
	cr_expect_eq(c.caller->qp->state, IBV_QPS_RTS);
	cr_expect_eq(c.called->qp->state, IBV_QPS_RTS);
	cr_expect_eq(c.caller->send_cq->cq_context, c.caller);
	cr_expect_eq(c.called->verbs, c.caller->verbs);
	cr_expect_eq(c.called->pd, c.caller->pd); /* the device's default one */
	cr_expect_eq(c.called->channel, c.channel);
	cr_expect_eq(rdma_get_dst_port(c.caller), rdma_get_src_port(c.listener));
	cr_expect_eq(rdma_get_dst_port(c.called), rdma_get_src_port(c.caller));
	cr_expect_eq(rdma_get_src_port(c.called), rdma_get_src_port(c.listener));
	send_and_receive(c.caller, c.called);
	send_and_receive(c.called, c.caller);
	connection_close(&c);
}

Test(connect, a_request_carries_the_peers_parameters)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_conn_param asked = {
		.private_data = "for you",
		.private_data_len = 8,
		.responder_resources = 3,
		.initiator_depth = 5,
		.retry_count = 4,
		.rnr_retry_count = 6,
	};
	struct rdma_conn_param given = {
		.private_data = "and for you",
		.private_data_len = 12,
		.responder_resources = 2,
		.initiator_depth = 1,
		.rnr_retry_count = 7,
	};
	struct rdma_cm_id *listener, *caller, *called;
	struct ibv_qp_init_attr init;
	struct rdma_cm_event *event;
	struct ibv_qp_attr attr;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	listener->context = listener;
	caller = open_caller(channel, RDMA_PS_TCP, port);
	give_qp(caller);
	cr_assert_eq(rdma_connect(caller, &asked), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	cr_expect_eq(event->listen_id, listener);
	cr_expect_eq(called->context, listener);
	cr_expect_eq(called->ps, RDMA_PS_TCP);
	cr_expect_geq(event->param.conn.private_data_len, 8);
	cr_expect_str_eq(event->param.conn.private_data, "for you");
	cr_expect_eq(event->param.conn.responder_resources, 5);
	cr_expect_eq(event->param.conn.initiator_depth, 3);
	cr_expect_eq(event->param.conn.retry_count, 4);
	cr_expect_eq(event->param.conn.rnr_retry_count, 6);
	cr_expect_eq(event->param.conn.qp_num, caller->qp->qp_num);
	give_qp(called);
	cr_assert_eq(rdma_accept(called, &given), 0, "%s", strerror(errno));
	rdma_ack_cm_event(event);
	for (int i = 0; i < 2; i++) {
		event = expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
		if (event->id == caller) {
			cr_expect_geq(event->param.conn.private_data_len, 12);
			cr_expect_str_eq(event->param.conn.private_data, "and for you");
			cr_expect_eq(event->param.conn.qp_num, called->qp->qp_num);
		}
		rdma_ack_cm_event(event);
	}
	cr_assert_eq(ibv_query_qp(called->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
	cr_expect_eq(attr.max_rd_atomic, 1);
	cr_expect_eq(attr.max_dest_rd_atomic, 2);
	cr_assert_eq(ibv_query_qp(caller->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
	cr_expect_eq(attr.max_rd_atomic, 2);
	cr_expect_eq(attr.max_dest_rd_atomic, 1);
	cr_expect_eq(attr.retry_cnt, 4);
	cr_expect_eq(attr.rnr_retry, 7);
	rdma_destroy_ep(caller);
	pass_event(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(called);
	rdma_destroy_ep(listener);
	rdma_destroy_event_channel(channel);
}

Test(connect, a_rejection_carries_its_reason)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *event;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	give_qp(caller);
	cr_assert_eq(rdma_connect(caller, NULL), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	cr_assert_eq(rdma_reject(called, "no", 3), 0, "%s", strerror(errno));
	rdma_ack_cm_event(event);
	rdma_destroy_id(called);
	event = expect_event(channel, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(event->status, 28); /* consumer reject */
	cr_expect_geq(event->param.conn.private_data_len, 3);
	cr_expect_str_eq(event->param.conn.private_data, "no");
	rdma_ack_cm_event(event);
	cr_expect_eq(caller->qp->state, IBV_QPS_ERR);
	rdma_destroy_ep(caller);
	rdma_destroy_ep(listener);
	rdma_destroy_event_channel(channel);
}

/* Options of a vendor that the peer does not accept. */
Test(connect, a_rejection_of_options_has_its_own_reason)
{
	struct ibv_ece ece = { .vendor_id = 0x2c9, .options = 7 };
	struct rdma_event_channel *channel = open_channel();
	struct rdma_conn_param param = { .qp_num = 0x1234 };
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *event;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	cr_assert_eq(rdma_set_local_ece(caller, &ece), 0);
	cr_assert_eq(rdma_connect(caller, &param), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	cr_assert_eq(rdma_reject_ece(called, NULL, 0), 0, "%s", strerror(errno));
	rdma_ack_cm_event(event);
	rdma_destroy_id(called);
	event = expect_event(channel, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(event->status, 35); /* vendor option not supported */
	rdma_ack_cm_event(event);
	rdma_destroy_id(caller);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
}

Test(connect, a_port_without_a_listener)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *caller = open_caller(channel, RDMA_PS_TCP, 9), *waits;
	struct sockaddr_in a;

	give_qp(caller);
	cr_assert_eq(rdma_connect(caller, NULL), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(event->status, 8); /* no such service */
	rdma_ack_cm_event(event);
	rdma_destroy_ep(caller);
	rdma_destroy_event_channel(channel);

	waits = open_id(NULL, RDMA_PS_TCP);
	cr_assert_eq(rdma_resolve_addr(waits, NULL, address(&a, OWN_ADDRESS, 9), 2000), 0);
	cr_assert_eq(rdma_resolve_route(waits, 2000), 0);
	give_qp(waits);
	errno = 0;
	cr_expect_eq(rdma_connect(waits, NULL), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	rdma_destroy_ep(waits);
}

/* ---- endpoints ---- */

static struct rdma_cm_id *make_endpoint(int flags, const char *port)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_getaddrinfo(OWN_ADDRESS, port, &hints, &res), 0);
	cr_assert_eq(rdma_create_ep(&id, res, NULL, &init), 0, "%s", strerror(errno));
	rdma_freeaddrinfo(res);
	return id;
}

static void *serve(void *argument)
{
	struct rdma_cm_id *listener = argument, *id;
	char octet[64];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	cr_assert_eq(rdma_get_request(listener, &id), 0, "%s", strerror(errno));
	cr_assert_not_null(id->qp);
	cr_expect_neq(id->channel, listener->channel);
	mr = rdma_reg_msgs(id, octet, sizeof(octet));
	cr_assert_eq(rdma_post_recv(id, NULL, octet, sizeof(octet), mr), 0);
	cr_assert_eq(rdma_accept(id, NULL), 0, "%s", strerror(errno));
	cr_expect_eq(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(rdma_get_recv_comp(id, &wc), 1);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	cr_expect_str_eq(octet, "endpoint");
	cr_assert_eq(rdma_disconnect(id), 0, "%s", strerror(errno));
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return NULL;
}

Test(connect, endpoints_wait)
{
	struct rdma_cm_id *listener = make_endpoint(RAI_PASSIVE, "7501"), *caller;
	char octet[64] = "endpoint";
	pthread_t thread;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	cr_assert_eq(rdma_listen(listener, 1), 0);
	cr_assert_eq(pthread_create(&thread, NULL, serve, listener), 0);
	caller = make_endpoint(0, "7501");
	cr_assert_not_null(caller->qp);
	cr_assert_eq(rdma_connect(caller, NULL), 0, "%s", strerror(errno));
	cr_expect_eq(caller->event->event, RDMA_CM_EVENT_ESTABLISHED);
	mr = rdma_reg_msgs(caller, octet, sizeof(octet));
	cr_assert_eq(rdma_post_send(caller, NULL, octet, sizeof(octet), mr, 0), 0);
	cr_assert_eq(rdma_get_send_comp(caller, &wc), 1);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(rdma_disconnect(caller), 0, "%s", strerror(errno));
	pthread_join(thread, NULL);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(caller);
	rdma_destroy_ep(listener);
}

/* ---- datagrams ---- */

Test(connect, a_datagram_service_is_looked_up)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *event;
	struct rdma_ud_param found;
	uint16_t port;
	char text[104] = "a datagram";
	struct ibv_mr *from, *to;
	char in[104] = "";
	struct ibv_ah *ah;
	struct ibv_wc wc;

	listener = open_listener(channel, RDMA_PS_UDP, &port);
	caller = open_caller(channel, RDMA_PS_UDP, port);
	give_qp(caller);
	cr_expect_eq(caller->qp->state, IBV_QPS_RTS);
	cr_assert_eq(rdma_connect(caller, NULL), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	give_qp(called);
	called->event = event; /* the member is the program's own */
	cr_assert_eq(rdma_accept(called, NULL), 0, "%s", strerror(errno));
	cr_expect_eq(called->event, event);
	called->event = NULL;
	rdma_ack_cm_event(event);
	event = expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(event->id, caller);
	found = event->param.ud;
	cr_expect_eq(found.qp_num, called->qp->qp_num);
	cr_expect_eq(found.qkey, (uint32_t)RDMA_UDP_QKEY);
	rdma_ack_cm_event(event);

	from = rdma_reg_msgs(caller, text, sizeof(text));
	to = rdma_reg_msgs(called, in, sizeof(in));
	ah = ibv_create_ah(caller->pd, &found.ah_attr);
	cr_assert_not_null(ah, "%s", strerror(errno));
	cr_assert_eq(rdma_post_recv(called, NULL, in, sizeof(in), to), 0);
	cr_assert_eq(rdma_post_ud_send(caller, NULL, text, 64, from, 0, ah, found.qp_num), 0);
	cr_assert_eq(rdma_get_recv_comp(called, &wc), 1);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	cr_expect_str_eq(in + 40, text);
	ibv_destroy_ah(ah);
	rdma_dereg_mr(from);
	rdma_dereg_mr(to);
	rdma_destroy_ep(called);
	rdma_destroy_ep(caller);
	rdma_destroy_ep(listener);
	rdma_destroy_event_channel(channel);
}

/* A synchronous listener, and the request that it accepts. */
struct service {
	struct rdma_event_channel *channel; /* the caller's; the listener moves to it, too */
	struct rdma_cm_id *listener, *caller, *called;
};

static int get_request(void *service)
{
	struct service *s = service;

	return rdma_get_request(s->listener, &s->called);
}

static int destroy_listener(void *service)
{
	return rdma_destroy_id(((struct service *)service)->listener);
}

static int move_listener(void *service)
{
	struct service *s = service;

	return rdma_migrate_id(s->listener, s->channel);
}

static void expect_return(const char *what, int (*call)(void *service), struct service *s)
{
	struct waiting w;

	waiting_start(&w, what, call, s);
	waiting_end(&w);
	cr_assert_eq(w.result, 0, "%s: %s", what, strerror(w.error));
}

static void open_service(struct service *s)
{
	uint16_t port;

	s->channel = open_channel();
	s->listener = open_listener(NULL, RDMA_PS_UDP, &port);
	s->caller = open_caller(s->channel, RDMA_PS_UDP, port);
	cr_assert_eq(rdma_connect(s->caller, NULL), 0, "%s", strerror(errno));
	expect_return("rdma_get_request", get_request, s);
	give_qp(s->called);
	cr_assert_eq(rdma_accept(s->called, NULL), 0, "%s", strerror(errno));
	cr_expect_null(s->called->event);
	pass_event(s->channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void close_service(struct service *s)
{
	rdma_destroy_ep(s->called);
	rdma_destroy_id(s->caller);
	rdma_destroy_event_channel(s->channel);
}

/* longer than waiting_end waits, so that its message is seen */
#define UNTIL_TOLD .timeout = 90

Test(connect, a_synchronous_service_outlives_its_listener, UNTIL_TOLD)
{
	struct service s;

	open_service(&s);
	expect_return("rdma_destroy_id", destroy_listener, &s);
	close_service(&s);
}

Test(connect, the_listener_of_a_synchronous_service_moves, UNTIL_TOLD)
{
	struct service s;

	open_service(&s);
	expect_return("rdma_migrate_id", move_listener, &s);
	rdma_destroy_id(s.listener);
	close_service(&s);
}

/* ---- programs that move their queue pairs themselves ---- */

static void move(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;

	cr_assert_eq(rdma_init_qp_attr(id, &attr, &mask), 0, "to %d: %s", state, strerror(errno));
	cr_assert(mask & IBV_QP_STATE);
	cr_assert_eq(ibv_modify_qp(qp, &attr, mask), 0, "to %d", state);
}

static struct ibv_qp *own_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ibv_create_qp(pd, &init);
}

static void say_ece(struct rdma_cm_id *id, uint32_t vendor, uint32_t options)
{
	struct ibv_ece ece = { .vendor_id = vendor, .options = options };

	cr_assert_eq(rdma_set_local_ece(id, &ece), 0, "%s", strerror(errno));
}

static void expect_ece(struct rdma_cm_id *id, uint32_t vendor, uint32_t options)
{
	struct ibv_ece ece = { 0 };

	cr_assert_eq(rdma_get_remote_ece(id, &ece), 0, "%s", strerror(errno));
	cr_expect_eq(ece.vendor_id, vendor, "0x%x", ece.vendor_id);
	cr_expect_eq(ece.options, options, "0x%x", ece.options);
}

Test(connect, with_queue_pairs_of_the_program)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_event *event;
	struct ibv_qp *qp[2];
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	pd = ibv_alloc_pd(caller->verbs);
	cq = ibv_create_cq(caller->verbs, 16, NULL, NULL, 0);
	qp[0] = own_qp(caller, pd, cq);
	qp[1] = own_qp(caller, pd, cq);
	cr_assert(qp[0] != NULL && qp[1] != NULL);
	param.qp_num = qp[0]->qp_num;
	say_ece(caller, 0x15b3, 0x80000001);
	cr_assert_eq(rdma_connect(caller, &param), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	expect_ece(called, 0x15b3, 0x80000001);
	say_ece(called, 0xabcdef, 1);
	for (enum ibv_qp_state s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++)
		move(called, qp[1], s);
	param.qp_num = qp[1]->qp_num;
	cr_assert_eq(rdma_accept(called, &param), 0, "%s", strerror(errno));
	rdma_ack_cm_event(event);
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	cr_expect_eq(event->id, caller);
	cr_expect_eq(event->param.conn.qp_num, qp[1]->qp_num);
	expect_ece(caller, 0x15b3, 1); /* the request's vendor, as in rdma-core */
	rdma_ack_cm_event(event);
	for (enum ibv_qp_state s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++)
		move(caller, qp[0], s);
	cr_assert_eq(rdma_establish(caller), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(event->id, called);
	rdma_ack_cm_event(event);
	rdma_destroy_id(caller);
	pass_event(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_id(called);
	rdma_destroy_id(listener);
	ibv_destroy_qp(qp[0]);
	ibv_destroy_qp(qp[1]);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	rdma_destroy_event_channel(channel);
}

/* ---- shared receives ---- */

Test(connect, receives_of_an_srq)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *event;
	struct rdma_conn_param *asked;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	cr_assert_eq(rdma_create_srq(caller, NULL, &shared), 0, "%s", strerror(errno));
	cr_assert_not_null(caller->srq);
	give_qp(caller);
	cr_assert_eq(rdma_connect(caller, NULL), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	asked = &event->param.conn;
	cr_expect_eq(asked->srq, 1);
	give_qp(called);
	cr_assert_eq(rdma_accept(called, NULL), 0, "%s", strerror(errno));
	rdma_ack_cm_event(event);
	pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	send_and_receive(called, caller);
	rdma_destroy_ep(caller);
	pass_event(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(called);
	rdma_destroy_ep(listener);
	rdma_destroy_event_channel(channel);
}

/* ---- too early, too late, too much ---- */

Test(connect, calls_in_wrong_states_fail)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct rdma_conn_param param = { 0 };
	struct sockaddr_in a;
	struct connection c;

	cr_assert_eq(rdma_bind_addr(id, address(&a, OWN_ADDRESS, 0)), 0);
	FAILS(rdma_connect(id, &param), EINVAL);
	FAILS(rdma_connect(id, NULL), EINVAL);
	FAILS(rdma_accept(id, &param), EINVAL);
	FAILS(rdma_reject(id, NULL, 0), EINVAL);
	FAILS(rdma_disconnect(id), EINVAL);
	FAILS(rdma_establish(id), EINVAL);
	FAILS(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	connection_open(&c);
	FAILS(rdma_connect(c.caller, NULL), EINVAL);
	FAILS(rdma_accept(c.called, NULL), EINVAL);
	FAILS(rdma_establish(c.caller), EINVAL); /* the library moves its queue pair */
	connection_close(&c);
}

Test(connect, private_data_has_its_limit)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_event *event;
	char data[256] = "";
	uint16_t port;

	memset(data, 'x', sizeof(data));
	param.private_data = data;
	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	give_qp(caller);
	param.private_data_len = 57;
	FAILS(rdma_connect(caller, &param), EINVAL);
	param.private_data_len = 56;
	cr_assert_eq(rdma_connect(caller, &param), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	cr_expect_eq(event->param.conn.private_data_len, 56);
	cr_expect_eq(memcmp(event->param.conn.private_data, data, 56), 0);
	rdma_ack_cm_event(event);
	FAILS(rdma_reject(called, data, 149), EINVAL);
	cr_assert_eq(rdma_reject(called, data, 148), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(event->param.conn.private_data_len, 148);
	rdma_ack_cm_event(event);
	rdma_destroy_ep(called);
	rdma_destroy_ep(caller);
	rdma_destroy_ep(listener);
	rdma_destroy_event_channel(channel);
}
