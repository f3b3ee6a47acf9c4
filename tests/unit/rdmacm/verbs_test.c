/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that rdma_verbs.h adds, as in their manual pages. Runs with an engine at
 * $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static struct connection c;
static char *here, *there; /* a page for each end */

static void begin(void)
{
	here = aligned_alloc(4096, 4096);
	there = aligned_alloc(4096, 4096);
	memset(here, 'h', 4096);
	memset(there, 't', 4096);
	connection_open(&c);
}

static void end(void)
{
	connection_close(&c);
	free(here);
	free(there);
}

TestSuite(verbs, .init = begin, .fini = end, .timeout = 60);

static void expect_sent(struct rdma_cm_id *id, void *context, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	cr_assert_eq(rdma_get_send_comp(id, &wc), 1, "%s", strerror(errno));
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(wc.wr_id, (uintptr_t)context);
	cr_expect_eq(wc.opcode, opcode);
}

static void expect_received(struct rdma_cm_id *id, void *context, uint32_t length)
{
	struct ibv_wc wc;

	cr_assert_eq(rdma_get_recv_comp(id, &wc), 1, "%s", strerror(errno));
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(wc.wr_id, (uintptr_t)context);
	cr_expect_eq(wc.opcode, IBV_WC_RECV);
	cr_expect_eq(wc.byte_len, length);
}

Test(verbs, messages)
{
	struct ibv_mr *out = rdma_reg_msgs(c.caller, here, 4096);
	struct ibv_mr *in = rdma_reg_msgs(c.called, there, 4096);

	cr_assert(out != NULL && in != NULL);
	cr_expect_eq(out->pd, c.caller->pd);
	cr_assert_eq(rdma_post_recv(c.called, &c, there, 100, in), 0);
	cr_assert_eq(rdma_post_send(c.caller, &out, here, 64, out, IBV_SEND_SIGNALED), 0);
	expect_sent(c.caller, &out, IBV_WC_SEND);
	expect_received(c.called, &c, 64);
	cr_expect_eq(memcmp(there, here, 64), 0);
	cr_expect_eq(there[64], 't');
	/* inline data needs no region */
	cr_assert_eq(rdma_post_recv(c.called, NULL, there, 100, in), 0);
	cr_assert_eq(rdma_post_send(c.caller, NULL, here, 0, NULL, IBV_SEND_INLINE), 0);
	expect_sent(c.caller, NULL, IBV_WC_SEND);
	expect_received(c.called, NULL, 0);
	cr_expect_eq(rdma_dereg_mr(out), 0);
	cr_expect_eq(rdma_dereg_mr(in), 0);
}

Test(verbs, writes_and_reads)
{
	struct ibv_mr *local = rdma_reg_msgs(c.caller, here, 4096);
	struct ibv_mr *readable = rdma_reg_read(c.called, there, 2048);
	struct ibv_mr *writable = rdma_reg_write(c.called, there + 2048, 2048);

	cr_assert(local != NULL && readable != NULL && writable != NULL);
	cr_assert_eq(rdma_post_write(c.caller, here, here, 128, local, IBV_SEND_SIGNALED,
				     (uintptr_t)there + 2048, writable->rkey),
		     0);
	expect_sent(c.caller, here, IBV_WC_RDMA_WRITE);
	cr_expect_eq(memcmp(there + 2048, here, 128), 0);
	cr_expect_eq(there[2048 + 128], 't');
	cr_assert_eq(rdma_post_read(c.caller, there, here + 512, 64, local, IBV_SEND_SIGNALED,
				    (uintptr_t)there, readable->rkey),
		     0);
	expect_sent(c.caller, there, IBV_WC_RDMA_READ);
	cr_expect_eq(memcmp(here + 512, there, 64), 0);
	cr_expect_eq(here[512 + 64], 'h');
	cr_expect_eq(rdma_dereg_mr(local), 0);
	cr_expect_eq(rdma_dereg_mr(readable), 0);
	cr_expect_eq(rdma_dereg_mr(writable), 0);
}

/* A region for reading cannot be written, nor the other way round. */
static void expect_denied(bool write)
{
	struct ibv_mr *local = rdma_reg_msgs(c.caller, here, 4096);
	struct ibv_mr *remote = write ? rdma_reg_read(c.called, there, 4096)
				      : rdma_reg_write(c.called, there, 4096);
	struct ibv_wc wc;
	int error = write ? rdma_post_write(c.caller, NULL, here, 8, local, 0, (uintptr_t)there,
					    remote->rkey)
			  : rdma_post_read(c.caller, NULL, here, 8, local, 0, (uintptr_t)there,
					   remote->rkey);

	cr_assert_eq(error, 0, "%s", strerror(errno));
	cr_assert_eq(rdma_get_send_comp(c.caller, &wc), 1);
	cr_expect_eq(wc.status, IBV_WC_REM_ACCESS_ERR, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(here[0], 'h');
	cr_expect_eq(there[0], 't');
	rdma_dereg_mr(local);
	rdma_dereg_mr(remote);
}

Test(verbs, what_is_to_be_read_is_not_written)
{
	expect_denied(true);
}

Test(verbs, what_is_to_be_written_is_not_read)
{
	expect_denied(false);
}

/* Two elements in each direction: the ids' own queue pairs allow one. */
Test(verbs, lists)
{
	struct rdma_event_channel *channel = open_channel();
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
					    .cap = { 4, 4, 2, 2, 0 },
					    .sq_sig_all = 1 };
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *event;
	struct ibv_sge from[2], to[2];
	struct ibv_mr *out, *in;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	cr_assert_eq(rdma_create_qp_ex(caller, &init), 0, "%s", strerror(errno));
	cr_expect_eq(caller->pd, init.pd);
	cr_assert_eq(rdma_connect(caller, NULL), 0);
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	init = (struct ibv_qp_init_attr_ex){ .qp_type = IBV_QPT_RC, .cap = { 4, 4, 2, 2, 0 } };
	cr_assert_eq(rdma_create_qp_ex(called, &init), 0, "%s", strerror(errno));
	out = rdma_reg_msgs(caller, here, 4096);
	in = rdma_reg_write(called, there, 4096);
	to[0] = (struct ibv_sge){ (uintptr_t)there, 8, in->lkey };
	to[1] = (struct ibv_sge){ (uintptr_t)there + 100, 8, in->lkey };
	from[0] = (struct ibv_sge){ (uintptr_t)here, 4, out->lkey };
	from[1] = (struct ibv_sge){ (uintptr_t)here + 4, 12, out->lkey };
	cr_assert_eq(rdma_post_recvv(called, to, to, 2), 0);
	cr_assert_eq(rdma_accept(called, NULL), 0);
	rdma_ack_cm_event(event);
	pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	memcpy(here, "abcdefghijklmnop", 16);
	cr_assert_eq(rdma_post_sendv(caller, from, from, 2, 0), 0);
	expect_sent(caller, from, IBV_WC_SEND);
	expect_received(called, to, 16);
	cr_expect_eq(memcmp(there, "abcdefgh", 8), 0);
	cr_expect_eq(memcmp(there + 100, "ijklmnop", 8), 0);
	cr_assert_eq(rdma_post_writev(caller, NULL, from, 2, 0, (uintptr_t)there + 200, in->rkey),
		     0);
	expect_sent(caller, NULL, IBV_WC_RDMA_WRITE);
	cr_expect_eq(memcmp(there + 200, here, 16), 0);
	rdma_dereg_mr(in);
	in = rdma_reg_read(called, there, 4096);
	memset(here, 0, 16);
	cr_assert_eq(rdma_post_readv(caller, NULL, from, 2, 0, (uintptr_t)there + 200, in->rkey),
		     0);
	expect_sent(caller, NULL, IBV_WC_RDMA_READ);
	cr_expect_eq(memcmp(here, "abcdefghijklmnop", 16), 0);
	rdma_dereg_mr(in);
	rdma_dereg_mr(out);
	rdma_destroy_ep(caller);
	pass_event(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(called);
	rdma_destroy_ep(listener);
	rdma_destroy_event_channel(channel);
}

/* With an SRQ rdma_post_recv posts to it; rdma_create_srq_ex can make it, too. */
Test(verbs, shared_receives)
{
	struct rdma_cm_id *id = open_id(c.channel, RDMA_PS_TCP);
	struct ibv_pd *pd = ibv_alloc_pd(c.caller->verbs);
	struct ibv_srq_init_attr_ex shared = { .attr = { .max_wr = 3, .max_sge = 1 },
					       .comp_mask = IBV_SRQ_INIT_ATTR_PD,
					       .pd = pd };
	struct ibv_srq_attr now;
	struct sockaddr_in a;
	struct ibv_mr *mr;

	cr_assert_eq(rdma_bind_addr(id, address(&a, OWN_ADDRESS, 0)), 0);
	cr_assert_eq(rdma_create_srq_ex(id, &shared), 0, "%s", strerror(errno));
	cr_expect_eq(id->srq->pd, pd);
	cr_expect_geq(shared.attr.max_wr, 3);
	mr = ibv_reg_mr(pd, here, 64, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_eq(ibv_query_srq(id->srq, &now), 0);
	for (uint32_t i = 0; i < now.max_wr; i++)
		cr_assert_eq(rdma_post_recv(id, NULL, here, 64, mr), 0);
	cr_expect_eq(rdma_post_recv(id, NULL, here, 64, mr), -1);
	cr_expect_eq(errno, ENOMEM);
	rdma_destroy_srq(id);
	cr_expect_null(id->srq);
	cr_expect_eq(rdma_dereg_mr(mr), 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
}

/* The members of the struct that the program did not set may be anything, also at the second try. */
Test(verbs, an_srq_that_was_refused_can_be_made_smaller)
{
	struct rdma_cm_id *id = open_id(c.channel, RDMA_PS_TCP);
	struct ibv_srq_init_attr_ex shared;
	struct sockaddr_in a;

	memset(&shared, 0xee, sizeof(shared));
	shared.attr = (struct ibv_srq_attr){ .max_wr = 4, .max_sge = 100000 };
	shared.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	shared.srq_type = IBV_SRQT_XRC;
	cr_assert_eq(rdma_bind_addr(id, address(&a, OWN_ADDRESS, 0)), 0);
	FAILS(rdma_create_srq_ex(id, &shared), EINVAL);
	cr_expect_eq(shared.comp_mask, IBV_SRQ_INIT_ATTR_TYPE);
	cr_expect_null(id->recv_cq);
	shared.attr.max_sge = 1;
	cr_assert_eq(rdma_create_srq_ex(id, &shared), 0, "%s", strerror(errno));
	cr_expect_eq(shared.cq, id->recv_cq);
	rdma_destroy_srq(id);
	cr_expect_eq(rdma_destroy_id(id), 0);
}
