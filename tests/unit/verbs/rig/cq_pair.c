/* SPDX-License-Identifier: BSD-3-Clause */
#include "cq_pair.h"

#include <criterion/criterion.h>
#include <poll.h>

struct endpoint e;

void open_endpoint(void)
{
	endpoint_open(&e);
}

void close_endpoint(void)
{
	endpoint_close(&e);
}

int post_write(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + 4096;
	wr.wr.rdma.rkey = e.mr->rkey;
	return ibv_post_send(qp, &wr, &bad);
}

uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void open_pair_on(struct pair *p, struct ibv_cq *cq)
{
	struct ibv_cq *usual = e.cq;

	p->cq = cq;
	cr_assert_not_null(cq, "%m");
	e.cq = cq;
	for (int i = 0; i < 2; i++) {
		p->qp[i] = endpoint_create_qp(&e);
		cr_assert_not_null(p->qp[i], "%m");
	}
	e.cq = usual;
	for (int i = 0; i < 2; i++)
		cr_assert_eq(endpoint_connect(&e, p->qp[i], p->qp[1 - i]->qp_num), 0);
}

void open_pair(struct pair *p, int cqe)
{
	p->channel = ibv_create_comp_channel(e.context);
	cr_assert_not_null(p->channel, "%m");
	open_pair_on(p, ibv_create_cq(e.context, cqe, NULL, p->channel, 0));
}

void close_pair(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_qp(p->qp[i]), 0);
	cr_expect_eq(ibv_destroy_cq(p->cq), 0);
	if (p->channel != NULL)
		cr_expect_eq(ibv_destroy_comp_channel(p->channel), 0);
}

struct ibv_modify_cq_attr moderation(uint16_t count, uint16_t period)
{
	return (struct ibv_modify_cq_attr){ .attr_mask = IBV_CQ_ATTR_MODERATE,
					    .moderate = { count, period } };
}

bool has_event(struct ibv_comp_channel *channel, int ms)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, ms) != 1)
		return false;
	cr_assert_eq(ibv_get_cq_event(channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return true;
}

void post_many(struct ibv_qp *qp, uint64_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		cr_assert_eq(post_write(qp, first + i), 0, "request %u", i);
}

/* Returns when all n are in the queue, unpolled; one event stands for all of them. */
void complete_many(struct pair *p, uint64_t first, uint16_t n)
{
	struct ibv_modify_cq_attr attr = moderation(n, 0);

	cr_assert_eq(ibv_modify_cq(p->cq, &attr), 0);
	cr_assert_eq(ibv_req_notify_cq(p->cq, 0), 0);
	post_many(p->qp[0], first, n);
	cr_assert(has_event(p->channel, WAIT_SECONDS * 1000), "%u did not complete", n);
	attr = moderation(0, 0);
	cr_assert_eq(ibv_modify_cq(p->cq, &attr), 0);
}

void expect_in_order(struct ibv_cq *cq, uint64_t first, int n)
{
	struct ibv_wc wc[64];

	poll_completions(cq, wc, n, "what was posted");
	for (int i = 0; i < n; i++) {
		cr_assert_eq(wc[i].status, IBV_WC_SUCCESS);
		cr_assert_eq(wc[i].wr_id, first + (uint64_t)i, "completion %d is %lu", i,
			     wc[i].wr_id);
	}
	cr_assert_eq(ibv_poll_cq(cq, 1, wc), 0);
}

struct ibv_cq_ex *extended(uint64_t wc_flags, uint32_t flags, uint32_t cqe)
{
	struct ibv_cq_init_attr_ex init = { .cqe = cqe,
					    .wc_flags = wc_flags,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					    .flags = flags };

	return ibv_create_cq_ex(e.context, &init);
}
