/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The node GUID is the EUI-64 of the MAC address. */
static void learn_mac(struct raw_rig *r)
{
	struct ibv_device_attr attr;
	uint8_t o[8];

	cr_assert_eq(ibv_query_device(r->context, &attr), 0);
	memcpy(o, &attr.node_guid, 8);
	o[0] ^= 2;
	memcpy(r->mac, o, 3);
	memcpy(r->mac + 3, o + 5, 3);
	for (int i = 0; i < 6; i++)
		snprintf(r->mac_text + 2 * i, 3, "%02x", r->mac[i]);
}

int raw_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0));
}

struct ibv_qp *raw_create_qp(struct raw_rig *r, uint32_t create_flags, uint16_t max_tso_header)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = { RAW_DEPTH, RAW_DEPTH, 4, 4, 256 },
		.qp_type = IBV_QPT_RAW_PACKET,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			     IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = r->pd,
		.create_flags = create_flags,
		.max_tso_header = max_tso_header,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(r->context, &init);

	cr_assert_not_null(qp, "ibv_create_qp_ex: %m");
	cr_assert_eq(raw_to(qp, IBV_QPS_INIT), 0);
	cr_assert_eq(raw_to(qp, IBV_QPS_RTR), 0);
	cr_assert_eq(raw_to(qp, IBV_QPS_RTS), 0);
	return qp;
}

void raw_rig_open(struct raw_rig *r)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 4 * RAW_DEPTH,
					  .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN |
						      IBV_WC_EX_WITH_FLOW_TAG };

	memset(r, 0, sizeof(*r));
	r->context = open_only_device();
	r->pd = ibv_alloc_pd(r->context);
	r->cq_ex = ibv_create_cq_ex(r->context, &cq);
	cr_assert_not_null(r->cq_ex, "ibv_create_cq_ex: %m");
	r->cq = ibv_cq_ex_to_cq(r->cq_ex);
	r->buffer = aligned_alloc(4096, 80u * RAW_SLOT);
	memset(r->buffer, 0, 80u * RAW_SLOT);
	r->mr = ibv_reg_mr(r->pd, r->buffer, 80u * RAW_SLOT, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(r->mr, "ibv_reg_mr: %m");
	learn_mac(r);
	r->tx = raw_create_qp(r, 0, 128);
	r->rx = raw_create_qp(r, 0, 0);
}

void raw_rig_close(struct raw_rig *r)
{
	cr_expect_eq(ibv_destroy_qp(r->tx), 0);
	cr_expect_eq(ibv_destroy_qp(r->rx), 0);
	cr_expect_eq(ibv_dereg_mr(r->mr), 0);
	cr_expect_eq(ibv_destroy_cq(r->cq), 0);
	cr_expect_eq(ibv_dealloc_pd(r->pd), 0);
	cr_expect_eq(ibv_close_device(r->context), 0);
	free(r->buffer);
}

/* The specs follow the attribute without gaps, as ibv_create_flow(3) wants them. */
struct rule_memory {
	struct ibv_flow_attr attr;
	uint8_t octets[256];
	size_t used;
};

static void append(struct rule_memory *m, const void *spec, size_t size)
{
	memcpy((uint8_t *)(&m->attr + 1) + m->used, spec, size);
	m->used += size;
	m->attr.num_of_specs++;
}

struct ibv_flow *raw_rule(struct ibv_qp *qp, const struct raw_rule *rule)
{
	struct rule_memory m = { .attr = { .type = rule->type,
					   .priority = rule->priority,
					   .flags = rule->flags,
					   .port = 1 } };
	struct ibv_flow_spec_eth eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth) };
	struct ibv_flow_spec_action_tag tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof(tag), rule->tag };
	struct ibv_flow_spec_action_drop drop = { IBV_FLOW_SPEC_ACTION_DROP, sizeof(drop) };
	struct ibv_flow_spec_counter_action count = { IBV_FLOW_SPEC_ACTION_COUNT, sizeof(count),
						      rule->counters };
	struct built_frame b = { .length = 0 };

	if (rule->dst_mac != NULL) {
		put_mac(&b, rule->dst_mac);
		memcpy(eth.val.dst_mac, b.octet, 6);
		memset(eth.mask.dst_mac, 0xff, 6);
		append(&m, &eth, sizeof(eth));
	}
	if (rule->tag != 0)
		append(&m, &tag, sizeof(tag));
	if (rule->drop)
		append(&m, &drop, sizeof(drop));
	if (rule->counters != NULL)
		append(&m, &count, sizeof(count));
	return ibv_create_flow(qp, &m.attr);
}

void raw_post_recv(struct raw_rig *r, struct ibv_qp *qp, uint32_t slot, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)r->buffer + slot * RAW_SLOT, length, r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	memset(r->buffer + slot * RAW_SLOT, 0xee, RAW_SLOT);
	cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0, "ibv_post_recv: %m");
}

void raw_send(struct raw_rig *r, struct ibv_qp *qp, const struct built_frame *f, unsigned int flags,
	      enum ibv_wc_status status)
{
	struct ibv_sge sge = { (uintptr_t)r->buffer + RAW_SEND, (uint32_t)f->length, r->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 0x5e4d,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = flags };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	memcpy(r->buffer + RAW_SEND, f->octet, f->length);
	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0, "ibv_post_send: %m");
	poll_completions(r->cq, &wc, 1, "a frame was sent");
	cr_assert_eq(wc.wr_id, 0x5e4d);
	cr_assert_eq(wc.status, status, "%s, not %s (vendor_err %u)", ibv_wc_status_str(wc.status),
		     ibv_wc_status_str(status), wc.vendor_err);
}

struct ibv_wc raw_receive(struct raw_rig *r, const char *what)
{
	struct ibv_wc wc;

	poll_completions(r->cq, &wc, 1, what);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s: %s", what, ibv_wc_status_str(wc.status));
	cr_assert_eq(wc.opcode, IBV_WC_RECV, "%s: opcode %d", what, (int)wc.opcode);
	return wc;
}
