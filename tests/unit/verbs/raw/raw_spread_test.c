/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues and receive side scaling. Runs, privileged, with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <stdio.h>

#include "base/bits.h"
#include "lcore/raw/raw_hash.h"
#include "rig/engine_objects.h"
#include "raw_rig.h"

#define WQS   4u
#define DEEP  16u
#define ROUND 48u

static const uint8_t key[RSS_KEY_LENGTH] __attribute__((aligned(4))) = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static struct raw_rig r;

static void open_all(void)
{
	raw_rig_open(&r);
}

static void close_all(void)
{
	raw_rig_close(&r);
}

TestSuite(raw_spread, .init = open_all, .fini = close_all, .timeout = 60);

static struct ibv_wq *create_wq(uint32_t flags)
{
	struct ibv_wq_init_attr init = { .wq_context = &r,
					 .wq_type = IBV_WQT_RQ,
					 .max_wr = DEEP,
					 .max_sge = 2,
					 .pd = r.pd,
					 .cq = r.cq,
					 .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
					 .create_flags = flags };
	struct ibv_wq *wq = ibv_create_wq(r.context, &init);

	cr_assert_not_null(wq, "ibv_create_wq: %m");
	cr_assert_geq(init.max_wr, DEEP);
	return wq;
}

static int wq_to(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(wq, &attr);
}

static int post(struct ibv_wq *wq, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)r.buffer + slot * RAW_SLOT, RAW_SLOT, r.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_wq_recv(wq, &wr, &bad);
}

static struct ibv_qp *create_rss(struct ibv_rwq_ind_table *table, uint64_t fields)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = r.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = sizeof(key),
				  .rx_hash_key = (uint8_t *)(uintptr_t)key,
				  .rx_hash_fields_mask = fields },
	};
	struct ibv_qp *qp = ibv_create_qp_ex(r.context, &init);

	cr_assert_not_null(qp, "ibv_create_qp_ex: %m");
	return qp;
}

struct spread {
	struct ibv_wq *wq[WQS];
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
};

static void spread_open(struct spread *s, uint64_t fields)
{
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 2, .ind_tbl = s->wq };

	for (uint32_t i = 0; i < WQS; i++) {
		s->wq[i] = create_wq(0);
		cr_assert_eq(wq_to(s->wq[i], IBV_WQS_RDY), 0);
		for (uint32_t k = 0; k < DEEP - 1; k++)
			cr_assert_eq(post(s->wq[i], i * DEEP + k), 0);
	}
	s->table = ibv_create_rwq_ind_table(r.context, &init);
	cr_assert_not_null(s->table, "ibv_create_rwq_ind_table: %m");
	s->qp = create_rss(s->table, fields);
	s->flow = raw_rule(s->qp, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	cr_assert_not_null(s->flow, "ibv_create_flow: %m");
}

/* From the top down: each is in use until its users are gone. */
static void spread_close(struct spread *s)
{
	cr_assert_eq(ibv_destroy_qp(s->qp), EBUSY);
	cr_assert_eq(ibv_destroy_flow(s->flow), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(s->table), EBUSY);
	cr_assert_eq(ibv_destroy_qp(s->qp), 0);
	cr_assert_eq(ibv_destroy_wq(s->wq[0]), EBUSY);
	cr_assert_eq(ibv_destroy_rwq_ind_table(s->table), 0);
	for (uint32_t i = 0; i < WQS; i++)
		cr_assert_eq(ibv_destroy_wq(s->wq[i]), 0);
}

Test(raw_spread, frames_go_where_their_hash_says)
{
	const uint32_t fields = RSS_SRC_IPV4 | RSS_DST_IPV4 | RSS_SRC_PORT_UDP | RSS_DST_PORT_UDP;
	uint32_t seen[WQS] = { 0 };
	struct spread s;

	spread_open(&s, fields);
	for (uint32_t i = 0; i < ROUND; i++) {
		struct frame_recipe recipe = { .dst_mac = GROUP_MAC,
					       .dst = "10.0.0.2",
					       .protocol = 17,
					       .src_port = (uint16_t)(1000 + i),
					       .payload = 20 };
		struct built_frame f;
		struct raw_frame parsed;
		char src[32];
		struct ibv_wc wc;
		uint32_t to;

		snprintf(src, sizeof(src), "10.1.%u.7", i);
		recipe.src = src;
		build_frame(&f, &recipe);
		raw_frame_parse(&parsed, f.octet, f.length);
		to = raw_hash(&parsed, fields, key) % WQS;
		if (seen[to] == DEEP - 1)
			continue;
		raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
		wc = raw_receive(&r, "the frame");
		cr_assert_eq(wc.qp_num, s.wq[to]->wq_num, "frame %u", i);
		cr_assert_eq(wc.wr_id, to * DEEP + seen[to]++);
		cr_assert_arr_eq(r.buffer + wc.wr_id * RAW_SLOT, f.octet, f.length);
	}
	for (uint32_t i = 0; i < WQS; i++)
		cr_assert_gt(seen[i], 0, "work queue %u saw nothing", i);
	spread_close(&s);
}

Test(raw_spread, frames_without_the_fields_go_to_the_first_entry)
{
	struct built_frame f;
	struct spread s;

	spread_open(&s, RSS_SRC_IPV6 | RSS_DST_IPV6);
	build_frame(&f, &(struct frame_recipe){ .dst_mac = GROUP_MAC, .payload = 50 });
	raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
	cr_assert_eq(raw_receive(&r, "the frame").qp_num, s.wq[0]->wq_num);
	spread_close(&s);
}

Test(raw_spread, a_queue_pair_on_a_table_has_no_queues)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct spread s;

	spread_open(&s, 0);
	cr_expect_eq(ibv_post_send(s.qp, &send, &bad_send), EINVAL);
	cr_expect_eq(ibv_post_recv(s.qp, &recv, &bad_recv), EINVAL);
	cr_expect_eq(ibv_modify_qp(s.qp, &attr, IBV_QP_STATE), EOPNOTSUPP);
	cr_expect_eq(ibv_query_qp(s.qp, &attr, IBV_QP_STATE, &init), EOPNOTSUPP);
	cr_expect_null(ibv_qp_to_qp_ex(s.qp));
	spread_close(&s);
}

Test(raw_spread, states_of_a_work_queue)
{
	struct ibv_wq *wq = create_wq(0);
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
				    .wq_state = IBV_WQS_RDY,
				    .curr_wq_state = IBV_WQS_ERR };
	struct ibv_wc wc[2];

	cr_expect_eq(wq->state, IBV_WQS_RESET);
	cr_expect_eq(post(wq, 0), EINVAL, "in RESET nothing is posted");
	cr_expect_eq(ibv_modify_wq(wq, &attr), EINVAL, "it is not in that state");
	attr.curr_wq_state = IBV_WQS_RESET;
	cr_assert_eq(ibv_modify_wq(wq, &attr), 0);
	cr_expect_eq(wq->state, IBV_WQS_RDY);
	cr_assert_eq(post(wq, 7), 0);
	cr_assert_eq(post(wq, 8), 0);
	cr_assert_eq(wq_to(wq, IBV_WQS_ERR), 0);
	poll_completions(r.cq, wc, 2, "what was posted");
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		cr_expect_eq(wc[i].wr_id, 7 + (uint64_t)i);
		cr_expect_eq(wc[i].qp_num, wq->wq_num);
	}
	cr_expect_eq(wq_to(wq, IBV_WQS_RDY), EINVAL, "RESET comes first");
	cr_expect_eq(wq_to(wq, 7), EINVAL);
	cr_assert_eq(wq_to(wq, IBV_WQS_RESET), 0);
	cr_expect_eq(wq->state, IBV_WQS_RESET);
	cr_assert_eq(wq_to(wq, IBV_WQS_RDY), 0);
	for (uint32_t i = 0; i < DEEP; i++)
		cr_assert_eq(post(wq, i), 0);
	cr_expect_eq(post(wq, 99), ENOMEM, "it is full");
	cr_assert_eq(ibv_destroy_wq(wq), 0);
}

Test(raw_spread, a_work_queue_strips_tags_when_told)
{
	struct ibv_wq *wq = create_wq(IBV_WQ_FLAGS_CVLAN_STRIPPING);
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 0, .ind_tbl = &wq };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(r.context, &init);
	struct ibv_qp *qp = create_rss(table, 0);
	struct ibv_flow *flow = raw_rule(qp, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct ibv_wq_attr keep = { .attr_mask = IBV_WQ_ATTR_FLAGS,
				    .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING };
	struct ibv_wq_attr other = { .attr_mask = IBV_WQ_ATTR_FLAGS,
				     .flags_mask = IBV_WQ_FLAGS_SCATTER_FCS };
	struct built_frame f;

	build_frame(&f, &(struct frame_recipe){ .dst_mac = GROUP_MAC, .tags = 1, .payload = 60 });
	cr_assert_eq(wq_to(wq, IBV_WQS_RDY), 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct ibv_wc wc;

		cr_assert_eq(post(wq, i), 0);
		raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
		wc = raw_receive(&r, "the frame");
		cr_expect_eq(wc.byte_len, f.length - (i == 0 ? 4 : 0));
		cr_assert_eq(ibv_modify_wq(wq, &keep), 0);
	}
	cr_expect_eq(ibv_modify_wq(wq, &other), EOPNOTSUPP);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	cr_assert_eq(ibv_destroy_wq(wq), 0);
}

Test(raw_spread, a_closed_context_ends_all_its_objects)
{
	uint64_t before = engine_objects();
	struct raw_rig mine = r;
	struct spread s;

	raw_rig_open(&r);
	spread_open(&s, 0);
	cr_assert_gt(engine_objects(), before + WQS);
	cr_assert_eq(ibv_close_device(r.context), 0);
	cr_expect_eq(engine_objects(), before, "%d", (int)(engine_objects() - before));
	r = mine;
}

Test(raw_spread, read_only_memory_is_fatal_to_a_work_queue)
{
	struct ibv_wq *wq = create_wq(0);
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 0, .ind_tbl = &wq };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(r.context, &init);
	struct ibv_qp *qp = create_rss(table, 0);
	struct ibv_flow *flow = raw_rule(qp, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct ibv_sge sge = { (uintptr_t)r.buffer, 1000, 0xbad };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_async_event event;
	struct built_frame f;
	struct ibv_wc wc;

	build_frame(&f, &(struct frame_recipe){ .dst_mac = GROUP_MAC, .payload = 60 });
	cr_assert_eq(wq_to(wq, IBV_WQS_RDY), 0);
	cr_assert_eq(ibv_post_wq_recv(wq, &wr, &bad), 0);
	raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
	poll_completions(r.cq, &wc, 1, "the request at fault");
	cr_expect_eq(wc.status, IBV_WC_LOC_PROT_ERR, "%s", ibv_wc_status_str(wc.status));
	cr_assert_eq(ibv_get_async_event(r.context, &event), 0);
	cr_expect_eq(event.event_type, IBV_EVENT_WQ_FATAL);
	cr_expect_eq(event.element.wq, wq);
	ibv_ack_async_event(&event);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	cr_assert_eq(ibv_destroy_wq(wq), 0);
}
