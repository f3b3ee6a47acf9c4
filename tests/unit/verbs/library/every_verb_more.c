/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs, second half: datagrams, XRC, raw queue pairs, imports, and what the library answers
 * alone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "every_verb.h"

#define QKEY 0x1234u

static struct {
	struct ibv_qp *ud;
	struct ibv_ah *ah;
	struct ibv_qp *raw; /* NULL: not privileged */
	struct ibv_wq *wq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *xsrq;
	struct ibv_qp *initiator, *target; /* with extended calls, connected to each other */
	uint32_t xsrq_number;
	struct ibv_counters *counters[2];
	struct ibv_flow *flow; /* of `raw`, without counters at first */
} more;

static struct ibv_qp *typed_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = all.cq, .recv_cq = all.cq, .cap = { 8, 8, 2, 2, 0 }, .qp_type = type
	};

	return ibv_create_qp(all.pd, &init);
}

static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	int ud = qp->qp_type == IBV_QPT_UD;
	int error = ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PORT | (ud ? IBV_QP_QKEY | IBV_QP_PKEY_INDEX : 0));

	attr.qp_state = IBV_QPS_RTR;
	if (error == 0)
		error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (error == 0)
		error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | (ud ? IBV_QP_SQ_PSN : 0));
	return error;
}

static struct ibv_qp *new_target(void)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = more.xrcd };

	return ibv_create_qp_ex(all.context, &init);
}

static struct ibv_qp *new_initiator(void)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_SEND,
					    .send_cq = all.cq,
					    .cap = { .max_send_wr = 4, .max_send_sge = 1 },
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .pd = all.pd,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND };

	return ibv_create_qp_ex(all.context, &init);
}

static void connect_xrc(void)
{
	struct ibv_qp *qp[2];

	more.target = qp[0] = new_target();
	more.initiator = qp[1] = new_initiator();
	if (qp[0] == NULL || qp[1] == NULL || ibv_get_srq_num(more.xsrq, &more.xsrq_number) != 0)
		die("no XRC queue pairs: %m");
	for (int i = 0; i < 2; i++)
		if (modify(qp[i], IBV_QPS_INIT, 0) != 0 ||
		    modify(qp[i], IBV_QPS_RTR, qp[1 - i]->qp_num) != 0 ||
		    modify(qp[i], IBV_QPS_RTS, 0) != 0)
			die("an XRC queue pair does not come to RTS");
}

static struct ibv_flow *new_flow(uint8_t last_octet)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL,
			  .size = sizeof(rule),
			  .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH,
			 .size = sizeof(rule.eth),
			 .val = { .dst_mac = { 1, 0, 0x5e, 0, 0, last_octet } },
			 .mask = { .dst_mac = { 255, 255, 255, 255, 255, 255 } } },
	};

	return ibv_create_flow(more.raw, &rule.attr);
}

void more_make(void)
{
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_srq_init_attr_ex srq = { .attr = { .max_wr = 16, .max_sge = 1 },
					    .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
							 IBV_SRQ_INIT_ATTR_XRCD |
							 IBV_SRQ_INIT_ATTR_CQ |
							 IBV_SRQ_INIT_ATTR_PD,
					    .srq_type = IBV_SRQT_XRC,
					    .pd = all.pd,
					    .cq = all.cq };
	struct ibv_counters_init_attr counters = { 0 };
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1, .pd = all.pd, .cq = all.cq
	};

	more.ud = typed_qp(IBV_QPT_UD);
	more.ah = ibv_create_ah(all.pd, &all.path);
	more.xrcd = srq.xrcd = ibv_open_xrcd(all.context, &xrcd);
	more.xsrq = more.xrcd != NULL ? ibv_create_srq_ex(all.context, &srq) : NULL;
	if (more.ud == NULL || to_rts(more.ud) != 0 || more.ah == NULL || more.xsrq == NULL)
		die("no datagrams or no XRC: %m");
	connect_xrc();
	for (int i = 0; i < 2; i++)
		more.counters[i] = ibv_create_counters(all.context, &counters);
	more.raw = typed_qp(IBV_QPT_RAW_PACKET);
	if (more.raw != NULL && to_rts(more.raw) != 0)
		die("a raw queue pair does not come to RTS");
	more.flow = more.raw != NULL ? new_flow(255) : NULL;
	if (more.raw != NULL && more.flow == NULL)
		die("no rule: %m");
	more.wq = ibv_create_wq(all.context, &wq);
}

void more_destroy(void)
{
	struct thread t = { .call = "the end of the second half" };

	must(&t, ibv_destroy_qp(more.ud));
	must(&t, ibv_destroy_ah(more.ah));
	must(&t, ibv_destroy_qp(more.initiator));
	must(&t, ibv_destroy_qp(more.target));
	must(&t, ibv_destroy_srq(more.xsrq));
	must(&t, ibv_close_xrcd(more.xrcd));
	if (more.flow != NULL)
		must(&t, ibv_destroy_flow(more.flow));
	if (more.raw != NULL)
		must(&t, ibv_destroy_qp(more.raw));
	if (more.wq != NULL)
		must(&t, ibv_destroy_wq(more.wq));
	for (int i = 0; i < 2; i++)
		if (more.counters[i] != NULL)
			must(&t, ibv_destroy_counters(more.counters[i]));
}

/* ---- datagrams ---- */

static void post_datagram(struct thread *t)
{
	struct ibv_sge sge = { (uintptr_t)all.memory, 64, all.mr->lkey };
	struct ibv_sge room = { (uintptr_t)all.memory + 256, 128, all.mr->lkey };
	struct ibv_recv_wr receive = { .sg_list = &room, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.ud.ah = more.ah;
	wr.wr.ud.remote_qpn = more.ud->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	tolerate(t, ibv_post_recv(more.ud, &receive, &bad_receive));
	tolerate(t, ibv_post_send(more.ud, &wr, &bad));
}

static void group(struct thread *t)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e, [15] = (uint8_t)draw(t, 3) } };

	tolerate(t, ibv_attach_mcast(more.ud, &gid, 0));
	tolerate(t, ibv_detach_mcast(more.ud, &gid, 0));
}

static void answer_handle(struct thread *t)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = { .version_tclass_flow = htonl(6u << 28),
			       .sgid = all.path.grh.dgid,
			       .dgid = all.path.grh.dgid };
	struct ibv_ah *ah = made(t, ibv_create_ah_from_wc(all.pd, &wc, &grh, 1));

	if (ah != NULL)
		must(t, ibv_destroy_ah(ah));
}

/* ---- XRC ---- */

static void xrc(struct thread *t)
{
	struct ibv_qp *qp = made(t, new_target()), *opened;
	struct ibv_qp_open_attr attr = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_TYPE,
					 .xrcd = more.xrcd,
					 .qp_type = IBV_QPT_XRC_RECV };
	uint32_t number;

	if (qp != NULL) {
		attr.qp_num = qp->qp_num;
		opened = made(t, ibv_open_qp(all.context, &attr));
		if (opened != NULL)
			must(t, ibv_destroy_qp(opened));
		must(t, ibv_destroy_qp(qp));
	}
	qp = made(t, new_initiator());
	if (qp != NULL)
		must(t, ibv_destroy_qp(qp));
	must(t, ibv_get_srq_num(more.xsrq, &number));
	if (ibv_close_xrcd(more.xrcd) != EBUSY)
		die("an XRC domain with an SRQ in it is not busy");
}

/* A failure takes the queue pairs to ERR, where other requests are flushed. */
static void post_xrc(struct thread *t)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(more.initiator);
	struct ibv_sge sge = { (uintptr_t)all.memory + 256, 64, all.mr->lkey };
	struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad;

	tolerate(t, ibv_post_srq_recv(more.xsrq, &receive, &bad));
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_xrc_srqn(qp, more.xsrq_number);
	ibv_wr_set_sge(qp, all.mr->lkey, (uintptr_t)all.memory, 64);
	tolerate(t, ibv_wr_complete(qp));
}

/* ---- raw queue pairs, work queues, steering ---- */

static void steering(struct thread *t)
{
	struct ibv_flow *flow;

	if (more.raw == NULL)
		return;
	flow = made(t, new_flow((uint8_t)draw(t, 200)));
	if (flow != NULL)
		must(t, ibv_destroy_flow(flow));
}

static void post_frame(struct thread *t)
{
	struct ibv_sge sge = { (uintptr_t)all.memory, 64, all.mr->lkey };
	struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (more.raw == NULL)
		return;
	tolerate(t, ibv_post_recv(more.raw, &receive, &bad_receive));
	tolerate(t, ibv_post_send(more.raw, &wr, &bad));
}

static void work_queue(struct thread *t)
{
	static const enum ibv_wq_state states[] = { IBV_WQS_RESET, IBV_WQS_RDY, IBV_WQS_ERR };
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE,
				    .wq_state = states[draw(t, 3)] };
	struct ibv_sge sge = { (uintptr_t)all.memory, 64, all.mr->lkey };
	struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_rwq_ind_table_init_attr init = { .ind_tbl = &more.wq };
	struct ibv_rwq_ind_table *table;

	if (more.wq == NULL)
		return;
	tolerate(t, ibv_modify_wq(more.wq, &attr));
	tolerate(t, ibv_post_wq_recv(more.wq, &receive, &bad));
	table = made(t, ibv_create_rwq_ind_table(all.context, &init));
	if (table != NULL)
		must(t, ibv_destroy_rwq_ind_table(table));
}

static void counters(struct thread *t)
{
	struct ibv_counters *k = more.counters[draw(t, 2)];
	uint64_t values[2];

	if (k != NULL)
		tolerate(t, ibv_read_counters(k, values, 2, 0));
}

/* The rule has one of the two; the other is refused. */
static void attach_counters(struct thread *t)
{
	struct ibv_counter_attach_attr point = { .counter_desc =
							 (enum ibv_counter_description)draw(t, 2),
						 .index = draw(t, 2) };

	if (more.flow != NULL)
		tolerate(t, ibv_attach_counters_point_flow(more.counters[draw(t, 2)], &point,
							   more.flow));
}

static void rate_limit(struct thread *t)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = draw(t, 2) * 1000000 };

	tolerate(t, ibv_modify_qp_rate_limit(draw(t, 2) == 0 ? more.ud : all.restless, &attr));
}

/* ---- imports ---- */

static void import_parts(struct thread *t)
{
	int fd = dup(all.context->cmd_fd);
	struct ibv_context *context = made(t, ibv_import_device(fd));
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	if (context == NULL) {
		close(fd);
		return;
	}
	pd = made(t, ibv_import_pd(context, all.pd->handle));
	if (pd != NULL) {
		mr = made(t, ibv_import_mr(pd, all.mr->handle));
		if (mr != NULL)
			ibv_unimport_mr(mr);
		ibv_unimport_pd(pd);
	}
	must(t, ibv_close_device(context));
}

/* ---- what the library answers alone ---- */

static void words(struct thread *t)
{
	tolerate(t, ibv_fork_init());
	(void)ibv_is_fork_initialized();
	(void)ibv_rate_to_mbps(mult_to_ibv_rate(ibv_rate_to_mult(IBV_RATE_10_GBPS)));
	if (ibv_wc_status_str(IBV_WC_SUCCESS) == NULL || ibv_node_type_str(IBV_NODE_CA) == NULL ||
	    ibv_port_state_str(IBV_PORT_ACTIVE) == NULL ||
	    ibv_event_type_str(IBV_EVENT_CQ_ERR) == NULL)
		die("a word is missing");
}

const struct call more_verbs[] = {
	{ "post_send of a datagram", post_datagram },
	{ "attach_mcast of a datagram queue pair", group },
	{ "create_ah_from_wc", answer_handle },
	{ "open_qp", xrc },
	{ "wr_set_xrc_srqn", post_xrc },
	{ "create_flow", steering },
	{ "post_send of a frame", post_frame },
	{ "modify_wq, create_rwq_ind_table", work_queue },
	{ "read_counters", counters },
	{ "attach_counters_point_flow", attach_counters },
	{ "modify_qp_rate_limit", rate_limit },
	{ "import_mr", import_parts },
	{ "fork_init, words", words },
};

const uint32_t more_verbs_count = sizeof(more_verbs) / sizeof(more_verbs[0]);
