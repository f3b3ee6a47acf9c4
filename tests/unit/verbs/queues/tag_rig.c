/* SPDX-License-Identifier: BSD-3-Clause */
#include "tag_rig.h"

#include <criterion/criterion.h>
#include <endian.h>
#include <string.h>
#include <time.h>

struct endpoint e;
struct ibv_cq_ex *tag_cq;
struct ibv_srq *tag_srq;
struct ibv_qp *peer, *tagged;

struct ibv_srq_init_attr_ex usual(void)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = e.pd,
		.cq = ibv_cq_ex_to_cq(tag_cq),
		.tm_cap = { .max_num_tags = TAGS, .max_ops = TAGS },
	};
}

struct ibv_qp *create_qp(struct ibv_srq *on, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq,
		.recv_cq = on != NULL ? ibv_cq_ex_to_cq(tag_cq) : e.cq,
		.srq = on,
		.cap = { SENDS, SENDS, 1, 1, 0 },
		.qp_type = type,
	};

	return ibv_create_qp(e.pd, &init);
}

void tag_setup(void)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 1024, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO
	};
	struct ibv_srq_init_attr_ex of_srq;

	endpoint_open(&e);
	/* As many as both sides may have posted if the program does not poll. */
	cr_assert_eq(ibv_resize_cq(e.cq, 4 * SENDS), 0);
	tag_cq = ibv_create_cq_ex(e.context, &init);
	cr_assert_not_null(tag_cq, "ibv_create_cq_ex: %m");
	of_srq = usual();
	tag_srq = ibv_create_srq_ex(e.context, &of_srq);
	cr_assert_not_null(tag_srq, "ibv_create_srq_ex: %m");
	peer = create_qp(NULL, IBV_QPT_RC);
	tagged = create_qp(tag_srq, IBV_QPT_RC);
	cr_assert(peer != NULL && tagged != NULL, "ibv_create_qp: %m");
	cr_assert_eq(endpoint_connect(&e, peer, tagged->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, tagged, peer->qp_num), 0);
	for (size_t i = 0; i < BUFFER; i++)
		e.buffer[i] = i < SOURCE ? 0xee : (uint8_t)(i * 7 + i / 256);
}

void tag_teardown(void)
{
	cr_expect_eq(ibv_destroy_qp(peer), 0);
	cr_expect_eq(ibv_destroy_qp(tagged), 0);
	cr_expect_eq(ibv_destroy_srq(tag_srq), 0);
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(tag_cq)), 0);
	endpoint_close(&e);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool poll_tagged(struct seen *s)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc_tm_info info;

	if (ibv_start_poll(tag_cq, &attr) != 0)
		return false;
	ibv_wc_read_tm_info(tag_cq, &info);
	*s = (struct seen){ .wr_id = tag_cq->wr_id,
			    .status = tag_cq->status,
			    .opcode = ibv_wc_read_opcode(tag_cq),
			    .flags = ibv_wc_read_wc_flags(tag_cq),
			    .byte_len = ibv_wc_read_byte_len(tag_cq),
			    .qp_num = ibv_wc_read_qp_num(tag_cq),
			    .tag = info.tag,
			    .priv = info.priv };
	ibv_end_poll(tag_cq);
	return true;
}

struct seen next(const char *what)
{
	double end = now() + WAIT_SECONDS;
	struct seen s = { 0 };

	while (!poll_tagged(&s))
		cr_assert(now() < end, "%s does not come", what);
	return s;
}

void expect_seen(struct seen s, uint64_t wr_id, uint32_t opcode, uint32_t flags)
{
	cr_expect_eq(s.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(s.status));
	cr_expect_eq(s.wr_id, wr_id, "wr_id %d instead of %d", (int)s.wr_id, (int)wr_id);
	cr_expect_eq(s.opcode, opcode, "opcode %u", s.opcode);
	cr_expect_eq(s.flags, flags, "flags %#x", s.flags);
}

struct ibv_ops_wr operation(enum ibv_ops_wr_opcode opcode, uint64_t wr_id)
{
	return (struct ibv_ops_wr){ .wr_id = wr_id, .opcode = opcode, .flags = IBV_OPS_SIGNALED };
}

int post_operation(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int error = ibv_post_srq_ops(tag_srq, wr, &bad);

	cr_expect_eq(bad, error == 0 ? NULL : wr);
	return error;
}

struct seen add(uint64_t tag, uint64_t mask, uint32_t length, uint32_t *handle)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, length, e.mr->lkey };
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_ADD, tag);

	wr.tm.add.recv_wr_id = tag + 1000;
	wr.tm.add.sg_list = &sge;
	wr.tm.add.num_sge = 1;
	wr.tm.add.tag = tag;
	wr.tm.add.mask = mask;
	cr_assert_eq(post_operation(&wr), 0);
	if (handle != NULL)
		*handle = wr.tm.handle;
	return next("IBV_WC_TM_ADD");
}

void added(uint64_t tag, uint32_t length)
{
	expect_seen(add(tag, UINT64_MAX, length, NULL), tag, IBV_WC_TM_ADD, 0);
}

struct seen delete (uint32_t handle)
{
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_DEL, 77);

	wr.tm.handle = handle;
	cr_assert_eq(post_operation(&wr), 0);
	return next("IBV_WC_TM_DEL");
}

struct seen sync_to(uint32_t handled)
{
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_SYNC, 78);

	wr.flags |= IBV_OPS_TM_SYNC;
	wr.tm.unexpected_cnt = handled;
	cr_assert_eq(post_operation(&wr), 0);
	return next("IBV_WC_TM_SYNC");
}

void receive(uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + 8192, 8192, e.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_srq_recv(tag_srq, &wr, &bad), 0);
}

void send_from(struct ibv_qp *qp, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + offset, length, e.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 500,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
}

void header(uint32_t offset, uint8_t opcode, uint64_t tag)
{
	struct ibv_tmh h = { .opcode = opcode, .app_ctx = htobe32(APP), .tag = htobe64(tag) };

	memcpy(e.buffer + offset, &h, sizeof(h));
}

void send_tagged(uint8_t opcode, uint64_t tag, uint32_t length)
{
	header(SOURCE, opcode, tag);
	send_from(peer, SOURCE, length);
}

void send_rendezvous_with(uint32_t slot, uint64_t tag, uint32_t length, uint32_t rkey)
{
	uint32_t offset = SOURCE + slot * 64;
	struct ibv_rvh h = { .va = htobe64((uintptr_t)e.buffer + FETCHED),
			     .rkey = htobe32(rkey),
			     .len = htobe32(length) };

	header(offset, IBV_TMH_RNDV, tag);
	memcpy(e.buffer + offset + sizeof(struct ibv_tmh), &h, sizeof(h));
	send_from(peer, offset, 32);
}

void send_rendezvous(uint64_t tag, uint32_t length)
{
	send_rendezvous_with(0, tag, length, e.mr->rkey);
}

void sent(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	poll_completions(e.cq, &wc, 1, "the sender's completion");
	cr_expect_eq(wc.status, status, "%s", ibv_wc_status_str(wc.status));
}

void expect_fin(uint64_t tag)
{
	const struct ibv_tmh *h = (const void *)(e.buffer + FINS);

	cr_expect_eq(h->opcode, IBV_TMH_FIN);
	cr_expect_eq(h->tag, htobe64(tag));
	cr_expect_eq(h->app_ctx, htobe32(APP));
}

void receive_fin(void)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FINS, 64, e.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 600, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_recv(peer, &wr, &bad), 0);
}
