/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. Runs with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <rte_ring.h>

#include "base/bits.h"
#include "rig/endpoint.h"
#include "verbs/queues/srq.h"

#define RECEIVERS 4
#define SLOT	  256u /* octets of the buffer a message */

static struct endpoint e;
static struct ibv_srq *srq;
static struct ibv_qp *sender[RECEIVERS], *receiver[RECEIVERS];

static struct ibv_srq *create_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };

	errno = 0;
	return ibv_create_srq(e.pd, &init);
}

static struct ibv_qp *create_qp(struct ibv_srq *on)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq,
		.recv_cq = e.cq,
		.srq = on,
		.cap = { DEPTH, 0, 4, 0, 128 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(e.pd, &init);
}

static void setup(void)
{
	endpoint_open(&e);
	srq = create_srq(DEPTH, 2);
	cr_assert_not_null(srq, "ibv_create_srq: %m");
	for (int i = 0; i < RECEIVERS; i++) {
		sender[i] = create_qp(NULL);
		receiver[i] = create_qp(srq);
		cr_assert(sender[i] != NULL && receiver[i] != NULL, "ibv_create_qp: %m");
		cr_assert_eq(endpoint_connect(&e, sender[i], receiver[i]->qp_num), 0);
		cr_assert_eq(endpoint_connect(&e, receiver[i], sender[i]->qp_num), 0);
	}
}

static void teardown(void)
{
	for (int i = 0; i < RECEIVERS; i++) {
		cr_expect_eq(ibv_destroy_qp(sender[i]), 0);
		cr_expect_eq(ibv_destroy_qp(receiver[i]), 0);
	}
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	endpoint_close(&e);
}

TestSuite(srq, .init = setup, .fini = teardown, .timeout = 60);

static int post(struct ibv_srq *to, uint64_t wr_id, int num_sge)
{
	struct ibv_sge sge[3] = {
		{ (uintptr_t)e.buffer + (wr_id % 64) * SLOT, SLOT / 2, e.mr->lkey },
		{ (uintptr_t)e.buffer + (wr_id % 64) * SLOT + SLOT / 2, SLOT / 2, e.mr->lkey },
	};
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = num_sge };
	struct ibv_recv_wr *bad = NULL;
	int error = ibv_post_srq_recv(to, &wr, &bad);

	cr_expect_eq(bad, error == 0 ? NULL : &wr);
	return error;
}

static void post_many(uint64_t first, uint32_t n)
{
	for (uint64_t i = first; i < first + n; i++)
		cr_assert_eq(post(srq, i, 2), 0, "receive %u", (unsigned)i);
}

static void send_one(struct ibv_qp *qp, uint32_t imm)
{
	uint8_t *text = e.buffer + BUFFER - SLOT;
	struct ibv_sge sge = { (uintptr_t)text, SLOT, e.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1000,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = imm };
	struct ibv_send_wr *bad;

	memset(text, 0x5a, SLOT);
	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
}

/* Sends one message and takes both completions. Returns the wr_id of the receive. */
static uint64_t message(int i)
{
	struct ibv_wc wc[2];
	const struct ibv_wc *received;

	send_one(sender[i], (uint32_t)i);
	poll_completions(e.cq, wc, 2, "a message into the SRQ");
	cr_expect_eq(wc[0].status, IBV_WC_SUCCESS);
	cr_expect_eq(wc[1].status, IBV_WC_SUCCESS);
	received = wc[0].opcode & IBV_WC_RECV ? &wc[0] : &wc[1];
	cr_expect_eq(received->opcode, IBV_WC_RECV);
	cr_expect_eq(received->qp_num, receiver[i]->qp_num);
	cr_expect_eq(received->byte_len, SLOT);
	cr_expect_eq(received->imm_data, (uint32_t)i);
	return received->wr_id;
}

static uint32_t limit_of(struct ibv_srq *s)
{
	struct ibv_srq_attr a = { 0 };

	cr_expect_eq(ibv_query_srq(s, &a), 0);
	return a.srq_limit;
}

static bool event_comes(struct ibv_async_event *event, int wait_ms)
{
	struct pollfd p = { .fd = e.context->async_fd, .events = POLLIN };

	return poll(&p, 1, wait_ms) == 1 && ibv_get_async_event(e.context, event) == 0;
}

/* protocol-map 166 */
Test(srq, queue_pairs_share_its_requests_in_the_order_they_were_posted)
{
	post_many(0, 12);
	for (uint64_t i = 0; i < 12; i++) {
		cr_expect_eq(message((int)(i % RECEIVERS)), i);
		cr_expect_eq(e.buffer[i * SLOT], 0x5a);
		cr_expect_eq(e.buffer[i * SLOT + SLOT - 1], 0x5a);
	}
}

/*
 * protocol-map 166
 * hostile H-137: an error leaves nothing behind.
 */
Test(srq, an_empty_srq_makes_the_sender_wait)
{
	struct ibv_wc wc[2];

	send_one(sender[0], 0);
	cr_expect_eq(ibv_poll_cq(e.cq, 2, wc), 0);
	post_many(7, 1);
	poll_completions(e.cq, wc, 2, "the message, once a receive was posted");
	cr_expect_eq(wc[0].status, IBV_WC_SUCCESS);
	cr_expect_eq(wc[1].status, IBV_WC_SUCCESS);
}

Test(srq, it_holds_what_it_grants_and_more_once_messages_took_some)
{
	post_many(0, DEPTH);
	cr_expect_eq(post(srq, 99, 1), ENOMEM);
	message(0);
	message(1);
	post_many(DEPTH, 2);
	cr_expect_eq(post(srq, 99, 1), ENOMEM);
}

Test(srq, a_request_with_too_many_elements_is_refused_and_so_is_the_rest_of_its_list)
{
	struct ibv_recv_wr wr[3] = { { .wr_id = 1, .next = &wr[1] },
				     { .wr_id = 2, .next = &wr[2], .num_sge = 3 },
				     { .wr_id = 3 } };
	struct ibv_recv_wr *bad = NULL;

	cr_expect_eq(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
	cr_expect_eq(bad, &wr[1]);
	wr[1].num_sge = -1;
	cr_expect_eq(ibv_post_srq_recv(srq, &wr[1], &bad), EINVAL);
}

/* protocol-map 167 */
Test(srq, the_limit_event_comes_once_for_each_arming)
{
	struct ibv_srq_attr a = { .srq_limit = 3 };
	struct ibv_async_event event;

	post_many(0, 4);
	cr_assert_eq(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	cr_expect_eq(limit_of(srq), 3);
	message(0);
	cr_expect_eq(limit_of(srq), 3, "three are left: that is not below the limit");
	message(1);
	cr_assert(event_comes(&event, WAIT_SECONDS * 1000), "no event below the limit");
	cr_expect_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	cr_expect_eq(event.element.srq, srq);
	ibv_ack_async_event(&event);
	cr_expect_eq(limit_of(srq), 0);
	message(2);
	cr_expect_not(event_comes(&event, 0), "once");
	cr_assert_eq(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	message(3);
	cr_assert(event_comes(&event, WAIT_SECONDS * 1000), "armed again, it tells again");
	ibv_ack_async_event(&event);
}

/*
 * Otherwise a program that arms it too late, with an empty SRQ, and its senders would wait for
 * ever.
 */
Test(srq, a_limit_armed_too_late_sends_its_event_at_once)
{
	struct ibv_srq_attr a = { .srq_limit = 3 };
	struct ibv_async_event event;
	struct ibv_wc wc[2];

	post_many(0, 3);
	for (int i = 0; i < 3; i++)
		message(i);
	send_one(sender[0], 0); /* it waits for a receive request */
	cr_assert_eq(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	cr_assert(event_comes(&event, WAIT_SECONDS * 1000), "no event below the limit");
	cr_expect_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	cr_expect_eq(event.element.srq, srq);
	ibv_ack_async_event(&event);
	cr_expect_eq(limit_of(srq), 0);
	post_many(3, 4);
	poll_completions(e.cq, wc, 2, "the message");
	cr_assert_eq(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	cr_expect_not(event_comes(&event, 50), "three are left: that is not below the limit");
	message(1);
	cr_assert(event_comes(&event, WAIT_SECONDS * 1000), "armed in time");
	ibv_ack_async_event(&event);
}

/* protocol-map 168 */
Test(srq, a_resize_keeps_what_is_posted)
{
	struct ibv_srq_attr a = { .max_wr = 4 * DEPTH }, now;

	post_many(0, DEPTH);
	cr_assert_eq(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), 0);
	cr_assert_eq(ibv_query_srq(srq, &now), 0);
	cr_expect_eq(now.max_wr, 4 * DEPTH);
	post_many(DEPTH, 3 * DEPTH);
	cr_expect_eq(post(srq, 99, 1), ENOMEM);
	for (uint64_t i = 0; i < 2 * DEPTH; i++)
		cr_expect_eq(message((int)(i % RECEIVERS)), i);
	a.max_wr = 2 * DEPTH - 1;
	cr_expect_eq(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), EINVAL, "fewer than are posted");
	a.max_wr = 2 * DEPTH;
	cr_expect_eq(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), 0);
	for (uint64_t i = 2 * DEPTH; i < 4 * DEPTH; i++)
		cr_expect_eq(message((int)(i % RECEIVERS)), i);
}

/* hostile H-109 */
Test(srq, a_failed_resize_leaves_the_srq_unchanged)
{
	struct ibv_srq_attr a = { .max_wr = 1u << 30 };

	post_many(0, 2);
	cr_expect_eq(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), EINVAL);
	cr_expect_eq(message(0), 0);
	post_many(2, 1);
	cr_expect_eq(message(1), 1);
	cr_expect_eq(message(2), 2);
}

/* hostile H-109: a resize that fails. */
Test(srq, endless_resizes_are_refused_early)
{
	struct ibv_srq_attr a = { 0 };
	int error = 0, n;

	for (n = 0; n < 100 && error == 0; n++) {
		post_many((uint64_t)n, 1);
		a.max_wr = DEPTH + 16 + (uint32_t)n;
		error = ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR);
	}
	cr_expect_eq(error, ENOMEM);
	for (int i = 0; i < n; i++)
		cr_expect_eq(message(i % RECEIVERS), (uint64_t)i);
	cr_expect_eq(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), 0, "there is room again");
}

Test(srq, attributes_out_of_range)
{
	static const struct {
		const char *what;
		int mask;
		struct ibv_srq_attr attr;
	} cases[] = {
		{ "a limit above the size", IBV_SRQ_LIMIT, { .srq_limit = DEPTH + 1 } },
		{ "no requests", IBV_SRQ_MAX_WR, { .max_wr = 0 } },
		{ "both, the limit wrong", IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR, { 8, 0, 9 } },
		{ "an unknown attribute", 1 << 5, { 8, 0, 8 } },
	};
	struct ibv_srq_attr a;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		a = cases[i].attr;
		cr_expect_eq(ibv_modify_srq(srq, &a, cases[i].mask), EINVAL, "%s", cases[i].what);
	}
	cr_expect_eq(ibv_query_srq(srq, &a), 0);
	cr_expect_eq(a.max_wr, DEPTH, "nothing was changed");
	cr_expect_eq(a.srq_limit, 0);
	cr_expect_eq(ibv_modify_srq(srq, &a, 0), 0);
}

Test(srq, announced_limits_are_granted_and_no_more)
{
	struct ibv_device_attr d;
	struct ibv_srq *s;

	cr_assert_eq(ibv_query_device(e.context, &d), 0);
	cr_expect(d.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	s = create_srq((uint32_t)d.max_srq_wr, (uint32_t)d.max_srq_sge);
	cr_assert_not_null(s, "%m");
	cr_expect_eq(ibv_destroy_srq(s), 0);
	cr_expect_null(create_srq((uint32_t)d.max_srq_wr + 1, 1));
	cr_expect_eq(errno, EINVAL);
	cr_expect_null(create_srq(1, (uint32_t)d.max_srq_sge + 1));
	cr_expect_eq(errno, EINVAL);
	cr_expect_null(create_srq(0, 1));
	cr_expect_eq(errno, EINVAL);
}

Test(srq, extended_creation)
{
	struct ibv_pd *other;
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 5, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
	};
	struct ibv_srq *s;
	uint32_t number;

	errno = 0;
	cr_expect_null(ibv_create_srq_ex(e.context, &init));
	cr_expect_eq(errno, EINVAL, "no protection domain: %m");
	init.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	init.pd = e.pd;
	s = ibv_create_srq_ex(e.context, &init);
	cr_assert_not_null(s, "%m");
	cr_expect_geq(init.attr.max_wr, 5);
	cr_expect_eq(ibv_get_srq_num(s, &number), EOPNOTSUPP, "it has none that peers may know");
	cr_expect_eq(ibv_destroy_srq(s), 0);
	init.srq_type = 77;
	errno = 0;
	cr_expect_null(ibv_create_srq_ex(e.context, &init));
	cr_expect_eq(errno, EOPNOTSUPP);
	other = ibv_alloc_pd(e.context);
	cr_expect_eq(ibv_dealloc_pd(other), 0);
}

Test(srq, it_is_busy_while_queue_pairs_use_it_and_holds_its_protection_domain)
{
	struct ibv_pd *pd = ibv_alloc_pd(e.context);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *s = ibv_create_srq(pd, &init);

	cr_expect_eq(ibv_destroy_srq(srq), EBUSY);
	cr_expect_eq(ibv_dealloc_pd(pd), EBUSY);
	cr_expect_eq(ibv_destroy_srq(s), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
}

/* protocol-map 133 */
Test(srq, a_queue_pair_in_error_leaves_its_requests_to_the_others)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event event;
	struct ibv_wc wc;

	post_many(0, 2);
	cr_assert_eq(ibv_modify_qp(receiver[0], &attr, IBV_QP_STATE), 0);
	cr_assert(event_comes(&event, WAIT_SECONDS * 1000), "no LAST_WQE_REACHED");
	cr_expect_eq(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	cr_expect_eq(event.element.qp, receiver[0]);
	ibv_ack_async_event(&event);
	cr_expect_eq(ibv_poll_cq(e.cq, 1, &wc), 0, "nothing of the SRQ is flushed");
	cr_expect_eq(message(1), 0);
	cr_expect_eq(message(2), 1);
}

/* hostile H-90 */
Test(srq, a_ring_full_of_nonsense_ends_only_its_own_users)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_async_event event;
	struct ibv_wc wc;

	cr_assert_eq(ibv_modify_qp(sender[0], &attr, IBV_QP_STATE), 0);
	cr_assert_eq(endpoint_connect_for(&e, sender[0], receiver[0]->qp_num, IMPATIENT_TIMEOUT),
		     0);
	__atomic_store_n(&((struct srq *)srq)->ring->prod.tail, 0x12345678, __ATOMIC_RELEASE);
	send_one(sender[0], 0);
	cr_assert(event_comes(&event, WAIT_SECONDS * 1000), "no IBV_EVENT_SRQ_ERR");
	while (event.event_type != IBV_EVENT_SRQ_ERR) {
		ibv_ack_async_event(&event);
		cr_assert(event_comes(&event, WAIT_SECONDS * 1000), "no IBV_EVENT_SRQ_ERR");
	}
	cr_expect_eq(event.element.srq, srq);
	ibv_ack_async_event(&event);
	while (event_comes(&event, 100))
		ibv_ack_async_event(&event);
	poll_completions(e.cq, &wc, 1, "the sender's failure");
	cr_expect_neq(wc.status, IBV_WC_SUCCESS);
}

/* hostile H-92: the engine, too, checks the number of elements. */
Test(srq, a_forged_number_of_elements_is_an_error_of_that_queue_pair)
{
	struct srq *forged = (struct srq *)srq;
	struct recv_work *slot = (struct recv_work *)(void *)(forged->ring + 1);
	struct ibv_wc wc[2];

	post_many(0, 1);
	slot->num_sge = 1u << 20;
	send_one(sender[0], 0);
	poll_completions(e.cq, wc, 2, "both failures");
	cr_expect_neq(wc[0].status, IBV_WC_SUCCESS);
	cr_expect_neq(wc[1].status, IBV_WC_SUCCESS);
}

static int post_of(uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + 8 * SLOT, SLOT, lkey };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/*
 * IBTA 10.2.9.1: requests of an SRQ name memory of the SRQ's protection domain, whichever queue
 * pair takes them.
 */
Test(srq, a_queue_pair_of_another_protection_domain_receives_into_the_srqs)
{
	struct ibv_pd *pd = e.pd, *other = ibv_alloc_pd(e.context);
	struct ibv_mr *foreign = ibv_reg_mr(other, e.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *stranger, *peer = create_qp(NULL);
	struct ibv_wc wc[2];

	e.pd = other;
	stranger = create_qp(srq);
	e.pd = pd;
	cr_assert(stranger != NULL && foreign != NULL && peer != NULL, "%m");
	cr_assert_eq(endpoint_connect(&e, stranger, peer->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, peer, stranger->qp_num), 0);
	cr_assert_eq(post_of(e.mr->lkey), 0);
	send_one(peer, 1);
	poll_completions(e.cq, wc, 2, "a message");
	for (int i = 0; i < 2; i++)
		cr_expect_eq(wc[i].status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[i].status));
	cr_assert_eq(post_of(foreign->lkey), 0);
	send_one(peer, 2);
	poll_completions(e.cq, wc, 2, "a message into memory of the queue pair's own domain");
	for (int i = 0; i < 2; i++)
		cr_expect_eq(wc[i].status,
			     wc[i].opcode & IBV_WC_RECV ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR,
			     "%s", ibv_wc_status_str(wc[i].status));
	cr_expect_eq(ibv_destroy_qp(stranger), 0);
	cr_expect_eq(ibv_destroy_qp(peer), 0);
	cr_expect_eq(ibv_dereg_mr(foreign), 0);
	cr_expect_eq(ibv_dealloc_pd(other), 0);
}
