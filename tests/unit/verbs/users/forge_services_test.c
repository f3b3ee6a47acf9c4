/* SPDX-License-Identifier: BSD-3-Clause */
/* hostile H-54 as forge_test.c has it for RC, of pairs of other services: UC and XRC. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>

#include "base/bits.h"
#include "rig/endpoint.h"
#include "forger.h"

#define HALF (BUFFER / 2)

static struct endpoint victim;

TestSuite(forge_services, .timeout = 120);

static const struct {
	const char *name;
	uint32_t opcode;
	bool unreliable; /* UC has it, too */
} forged[] = {
	{ "SEND", IBV_WR_SEND, true },
	{ "SEND with immediate", IBV_WR_SEND_WITH_IMM, true },
	{ "WRITE", IBV_WR_RDMA_WRITE, true },
	{ "WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, true },
	{ "READ", IBV_WR_RDMA_READ, false },
	{ "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, false },
};

/* Whatever it sends there with the right PSN and key changes nothing, and is counted. */
static void forge(const struct order *towards, uint32_t row, enum ibv_wc_status status)
{
	struct order o = *towards;
	uint64_t before = forger_counted();
	struct report r;

	o.opcode = forged[row].opcode;
	o.address = (uintptr_t)victim.buffer;
	o.rkey = victim.mr->rkey;
	r = forger_obeys(&o);
	cr_assert_eq(r.sent, 1, "%s: it was not sent", forged[row].name);
	cr_expect_eq(r.status, status, "%s: %s", forged[row].name, ibv_wc_status_str(r.status));
	cr_expect(forger_counts(before), "%s: it is not counted", forged[row].name);
	victim_untouched(&victim, forged[row].name);
}

/* The pair's own SEND arrives: none of its receive requests was used. */
static void expect_message(struct ibv_qp *from, uint32_t srqn)
{
	struct ibv_sge sge = { (uintptr_t)victim.buffer, 64, victim.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .qp_type = { .xrc = { .remote_srqn = srqn } } },
			   *bad;
	struct ibv_wc wc[2];

	memset(victim.buffer, 0x11, 64);
	cr_assert_eq(ibv_post_send(from, &wr, &bad), 0);
	poll_completions(victim.cq, wc, 2, "the victims' own SEND");
	for (int i = 0; i < 2; i++)
		cr_expect_eq(wc[i].status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[i].status));
	cr_expect_eq(memcmp(victim.buffer, victim.buffer + HALF, 64), 0);
}

static struct ibv_recv_wr receive(struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){ (uintptr_t)victim.buffer + HALF, 64, victim.mr->lkey };
	return (struct ibv_recv_wr){ .sg_list = sge, .num_sge = 1 };
}

/* hostile H-54: UC, where each first packet may begin a message, whatever its PSN. */
Test(forge_services, a_strangers_packets_to_uc)
{
	struct order o = { .type = IBV_QPT_UC };
	struct report r = { 0 };
	struct ibv_recv_wr wr, *bad;
	struct ibv_qp *pair[2];
	struct ibv_sge sge;

	victim_begin(&victim);
	for (int i = 0; i < 2; i++) {
		pair[i] = forger_qp(&victim, &o);
		cr_assert_not_null(pair[i], "%m");
	}
	for (int i = 0; i < 2; i++) {
		o.qpn = pair[1 - i]->qp_num;
		cr_assert_eq(forger_aim(&victim, pair[i], &o, 0, &r), 0);
	}
	wr = receive(&sge);
	cr_assert_eq(ibv_post_recv(pair[1], &wr, &bad), 0);
	o.qpn = pair[1]->qp_num;
	for (uint32_t i = 0; i < ARRAY_SIZE(forged); i++)
		if (forged[i].unreliable)
			forge(&o, i, IBV_WC_SUCCESS); /* nobody answers */
	expect_message(pair[0], 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_qp(pair[i]), 0);
	victim_end(&victim);
}

/* hostile H-54: XRC, where a packet names an SRQ. */
Test(forge_services, a_strangers_packets_to_an_xrc_target)
{
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							  IBV_XRCD_INIT_ATTR_OFLAGS,
					     .fd = -1,
					     .oflags = O_CREAT };
	struct ibv_srq_init_attr_ex shared = { .attr = { .max_wr = DEPTH, .max_sge = 1 },
					       .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
							    IBV_SRQ_INIT_ATTR_PD |
							    IBV_SRQ_INIT_ATTR_XRCD |
							    IBV_SRQ_INIT_ATTR_CQ,
					       .srq_type = IBV_SRQT_XRC };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD };
	struct order o = { .type = IBV_QPT_XRC_SEND, .psn = 0xfffffe };
	struct ibv_qp *target, *initiator;
	struct ibv_recv_wr wr, *bad;
	struct ibv_srq *srq;
	struct ibv_sge sge;

	victim_begin(&victim);
	init.xrcd = shared.xrcd = ibv_open_xrcd(victim.context, &domain);
	cr_assert_not_null(shared.xrcd, "%m");
	shared.pd = victim.pd;
	shared.cq = victim.cq;
	srq = ibv_create_srq_ex(victim.context, &shared);
	target = ibv_create_qp_ex(victim.context, &init);
	initiator = forger_qp(&victim, &o);
	cr_assert(srq != NULL && target != NULL && initiator != NULL, "%m");
	cr_assert_eq(endpoint_connect(&victim, initiator, target->qp_num), 0);
	cr_assert_eq(endpoint_connect(&victim, target, initiator->qp_num), 0);
	wr = receive(&sge);
	cr_assert_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
	cr_assert_eq(ibv_get_srq_num(srq, &o.srqn), 0);
	o.qpn = target->qp_num;
	for (uint32_t i = 0; i < ARRAY_SIZE(forged); i++)
		forge(&o, i, IBV_WC_RETRY_EXC_ERR);
	expect_message(initiator, o.srqn);
	cr_expect_eq(ibv_destroy_qp(initiator), 0);
	cr_expect_eq(ibv_destroy_qp(target), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_close_xrcd(init.xrcd), 0);
	victim_end(&victim);
}
