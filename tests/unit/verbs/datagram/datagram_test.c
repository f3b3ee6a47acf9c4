/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams, and UC queue pairs: requests that are refused and requests that work. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/ud.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static struct endpoint e;

static void setup(void)
{
	endpoint_open(&e);
}

static void teardown(void)
{
	endpoint_close(&e);
}

TestSuite(datagram, .init = setup, .fini = teardown, .timeout = 60);

Test(datagram, an_ipv4_grh_and_an_answer)
{
	struct ibv_qp *a = ud_open(&e, UD_QKEY), *b = ud_open(&e, UD_QKEY);
	struct ibv_ah *ah = ud_self(&e, GID_INDEX), *back;
	struct ibv_wc wc;

	ud_one_datagram(&e, ah, a, b, &wc);
	cr_expect_eq(wc.sl, 8 | 2, "UDP in IPv4, as ConnectX says it");
	for (uint32_t i = 0; i < 20; i++)
		cr_expect_eq(e.buffer[i], 0, "octet %u in front of the IPv4 header", i);
	cr_expect_eq(e.buffer[20], 0x45);
	cr_expect_eq(e.buffer[21], 0x20, "traffic class");
	cr_expect_eq(e.buffer[28], 9, "hop limit");
	cr_expect_eq(e.buffer[29], 17, "UDP");
	cr_expect_arr_eq(e.buffer + 32, "\x7f\x00\x00\x01\x7f\x00\x00\x01", 8);
	back = ibv_create_ah_from_wc(e.pd, &wc, (struct ibv_grh *)e.buffer, 1);
	cr_assert_not_null(back, "%m");
	ud_one_datagram(&e, back, b, a, &wc);
	cr_expect_eq(ibv_destroy_ah(back), 0);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(a), 0);
	cr_expect_eq(ibv_destroy_qp(b), 0);
}

Test(datagram, an_ipv6_grh)
{
	struct ibv_qp *a = ud_open(&e, UD_QKEY), *b = ud_open(&e, UD_QKEY);
	struct ibv_ah *ah = ud_self(&e, 0);
	union ibv_gid own;
	struct ibv_wc wc;

	cr_assert_eq(ibv_query_gid(e.context, 1, 0, &own), 0);
	ud_one_datagram(&e, ah, a, b, &wc);
	cr_expect_eq(wc.sl, 8 | 1, "UDP in IPv6");
	cr_expect_eq(e.buffer[0], 0x62, "version and the upper half of the traffic class");
	cr_expect_eq(e.buffer[6], 17, "UDP");
	cr_expect_eq(e.buffer[7], 9, "hop limit");
	cr_expect_arr_eq(e.buffer + 8, own.raw, 16);
	cr_expect_arr_eq(e.buffer + 24, own.raw, 16);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(a), 0);
	cr_expect_eq(ibv_destroy_qp(b), 0);
}

static uint32_t violations(void)
{
	struct ibv_port_attr port;

	cr_assert_eq(ibv_query_port(e.context, 1, &port), 0);
	return port.qkey_viol_cntr;
}

/* A datagram may arrive long after its sender has a completion. */
static void expect_violations(uint32_t n)
{
	for (int i = 0; i < WAIT_SECONDS * 100 && violations() < n; i++)
		usleep(10000);
	cr_expect_eq(violations(), n);
}

/* hostile H-22: a datagram that does not fit. */
Test(datagram, a_lost_datagram_does_no_harm)
{
	struct ibv_qp *a = ud_open(&e, UD_QKEY), *b = ud_open(&e, UD_QKEY);
	struct ibv_ah *ah = ud_self(&e, GID_INDEX);
	uint32_t before = violations();
	struct ibv_wc wc;

	cr_assert_eq(ud_send(&e, a, ah, b->qp_num, UD_QKEY, 8192, 64), 0);
	ud_sent_alone(e.cq, "no receive is posted");
	ud_receive(&e, b, 0, GRH + 63);
	cr_assert_eq(ud_send(&e, a, ah, b->qp_num, UD_QKEY, 8192, 64), 0);
	ud_sent_alone(e.cq, "one octet too long for the receive"); /* it takes no request */
	cr_assert_eq(ud_send(&e, a, ah, b->qp_num, UD_QKEY + 1, 8192, 8), 0);
	ud_sent_alone(e.cq, "another Q_Key");
	expect_violations(before + 1);
	cr_assert_eq(ud_send(&e, a, ah, e.qp[0]->qp_num, UD_QKEY, 8192, 8), 0);
	ud_sent_alone(e.cq, "a connected queue pair");
	cr_assert_eq(ud_send(&e, a, ah, 0xffffff, UD_QKEY, 8192, 8), 0);
	ud_sent_alone(e.cq, "all members of no group");
	cr_assert_eq(ud_send(&e, a, ah, b->qp_num, 0x80000000, 8192, 23), 0);
	for (int i = 0; i < 2; i++) {
		poll_completions(e.cq, &wc, 1, "its own Q_Key, and it fits");
		cr_expect_eq(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			cr_expect_eq(wc.byte_len, GRH + 23);
	}
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	ud_one_datagram(&e, ah = ud_self(&e, GID_INDEX), a, b, &wc);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(a), 0);
	cr_expect_eq(ibv_destroy_qp(b), 0);
}

/*
 * The attribute has 16 bits, and an attacker has time. Its name makes this the last test, because
 * the engine keeps the count. hostile H-61: unknown P_Keys.
 */
Test(datagram, violations_are_counted_up_to_65535)
{
	struct ibv_qp *a = ud_open(&e, UD_QKEY), *b = ud_open(&e, UD_QKEY);
	struct ibv_ah *ah = ud_self(&e, GID_INDEX);
	struct ibv_wc wc[UD_DEPTH];

	for (uint32_t sent = 0; sent < 70000; sent += UD_DEPTH) {
		for (uint32_t i = 0; i < UD_DEPTH; i++)
			cr_assert_eq(ud_send(&e, a, ah, b->qp_num, UD_QKEY + 1, 8192, 8), 0);
		poll_completions(e.cq, wc, UD_DEPTH, "datagrams with another Q_Key");
	}
	expect_violations(65535);
	ud_one_datagram(&e, ah, a, b, wc);
	cr_expect_eq(violations(), 65535, "it does not begin anew");
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(a), 0);
	cr_expect_eq(ibv_destroy_qp(b), 0);
}

Test(datagram, many_at_once)
{
	struct ibv_qp *a = ud_open(&e, UD_QKEY), *b = ud_open(&e, UD_QKEY);
	struct ibv_ah *ah = ud_self(&e, GID_INDEX);
	struct ibv_wc wc[2 * UD_DEPTH];

	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t i = 0; i < UD_DEPTH; i++) {
			ud_receive(&e, b, i * 2048, 1024 + GRH);
			memset(e.buffer + 32768 + i * 1024, (int)(round + i), 1024);
		}
		for (uint32_t i = 0; i < UD_DEPTH; i++)
			cr_assert_eq(ud_send(&e, a, ah, b->qp_num, UD_QKEY, 32768 + i * 1024, 1024),
				     0);
		poll_completions(e.cq, wc, 2 * UD_DEPTH, "a window of datagrams");
		for (uint32_t i = 0; i < UD_DEPTH; i++)
			cr_assert_arr_eq(e.buffer + i * 2048 + GRH, e.buffer + 32768 + i * 1024,
					 1024, "round %u, datagram %u", round, i);
	}
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(a), 0);
	cr_expect_eq(ibv_destroy_qp(b), 0);
}

/* ---- what cannot be posted ---- */

struct refused {
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	const char *why;
};

static void expect_refused(struct ibv_qp *qp, struct ibv_ah *ah, const struct refused *row,
			   size_t n)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp->qp_num;
	for (size_t i = 0; i < n; i++) {
		wr.opcode = row[i].opcode;
		wr.send_flags = row[i].flags;
		bad = NULL;
		cr_expect_eq(ibv_post_send(qp, &wr, &bad), EINVAL, "%s", row[i].why);
		cr_expect_eq(bad, &wr, "%s", row[i].why);
	}
}

Test(datagram, requests_that_ud_refuses)
{
	static const struct refused row[] = {
		{ IBV_WR_RDMA_WRITE, 0, "WRITE" },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, 0, "WRITE with immediate" },
		{ IBV_WR_RDMA_READ, 0, "READ" },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, 0, "compare and swap" },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 0, "fetch and add" },
		{ IBV_WR_LOCAL_INV, 0, "local invalidate" },
		{ IBV_WR_BIND_MW, 0, "bind" },
		{ IBV_WR_SEND_WITH_INV, 0, "SEND with invalidate" },
		{ IBV_WR_TSO, 0, "segmentation without having asked for it" },
		{ (enum ibv_wr_opcode)99, 0, "no opcode" },
		{ IBV_WR_SEND, 1u << 20, "no flag" },
	};
	struct ibv_qp *qp = ud_open(&e, UD_QKEY);
	struct ibv_pd *pd = ibv_alloc_pd(e.context);
	struct ibv_ah *ah = ud_self(&e, GID_INDEX), *foreign;
	struct ibv_ah_attr attr = ud_to_self(&e);
	struct ibv_port_attr port;
	uint32_t mtu;

	expect_refused(qp, ah, row, ROWS(row));
	foreign = ibv_create_ah(pd, &attr);
	cr_assert_not_null(foreign);
	cr_expect_eq(ud_send(&e, qp, foreign, 1, UD_QKEY, 0, 8), EINVAL, "of another domain");
	cr_expect_eq(ud_send(&e, qp, NULL, 1, UD_QKEY, 0, 8), EINVAL, "no address handle");
	cr_assert_eq(ibv_query_port(e.context, 1, &port), 0);
	mtu = 128u << port.active_mtu;
	cr_expect_eq(ud_send(&e, qp, ah, 1, UD_QKEY, 0, mtu + 1), EINVAL, "longer than the MTU");
	cr_expect_eq(ud_send(&e, qp, ah, qp->qp_num, UD_QKEY, 0, mtu), 0);
	ud_sent_alone(e.cq, "as long as the MTU");
	cr_expect_eq(ibv_destroy_ah(foreign), 0);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

/* ---- unreliable connections ---- */

static void uc_connect(struct ibv_qp *qp, uint32_t remote_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = remote_qpn,
		.ah_attr = ud_to_self(&e),
	};

	cr_assert_eq(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr.qp_state = IBV_QPS_RTR;
	cr_assert_eq(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN),
		     0);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void uc_send(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, length, e.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = 0x11223344,
		.wr.rdma = { (uintptr_t)e.buffer + 32768, e.mr->rkey },
	};
	struct ibv_send_wr *bad;

	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
}

Test(datagram, unreliable_connections_carry_messages)
{
	static const struct refused row[] = {
		{ IBV_WR_RDMA_READ, 0, "READ" },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, 0, "compare and swap" },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 0, "fetch and add" },
		{ IBV_WR_TSO, 0, "segmentation" },
		{ IBV_WR_SEND, IBV_SEND_IP_CSUM, "checksums are not offered" },
	};
	static const enum ibv_wr_opcode opcode[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						     IBV_WR_RDMA_WRITE_WITH_IMM };
	static const uint32_t length[] = { 0, 1, 1024, 1025, 30000 };
	struct ibv_qp *a = ud_create(&e, IBV_QPT_UC), *b = ud_create(&e, IBV_QPT_UC);
	struct ibv_wc wc[2];

	cr_assert(a != NULL && b != NULL);
	uc_connect(a, b->qp_num);
	uc_connect(b, a->qp_num);
	expect_refused(a, NULL, row, ROWS(row));
	for (size_t i = 0; i < ROWS(opcode) * ROWS(length); i++) {
		uint32_t n = length[i % ROWS(length)];

		for (uint32_t k = 0; k < n; k++)
			e.buffer[k] = (uint8_t)(k * 7 + i);
		ud_receive(&e, b, 32768, 30000);
		uc_send(a, opcode[i / ROWS(length)], n);
		poll_completions(e.cq, wc, 2, "a message");
		for (int k = 0; k < 2; k++)
			cr_assert_eq(wc[k].status, IBV_WC_SUCCESS, "%s",
				     ibv_wc_status_str(wc[k].status));
		cr_assert_arr_eq(e.buffer + 32768, e.buffer, n, "row %zu", i);
	}
	uc_send(a, IBV_WR_SEND, 100); /* no receive: it is lost, and both queue pairs still work */
	ud_sent_alone(e.cq, "no receive is posted");
	ud_receive(&e, b, 32768, 30000);
	uc_send(a, IBV_WR_SEND, 100);
	poll_completions(e.cq, wc, 2, "the next message");
	cr_expect_eq(ibv_destroy_qp(a), 0);
	cr_expect_eq(ibv_destroy_qp(b), 0);
}

/* ---- Q_Keys that programs may not choose ---- */

static int as_nobody(void)
{
	struct endpoint own;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
		return 2;
	alarm(30);
	prctl(PR_SET_DUMPABLE, 1); /* else it may not open its own memory */
	endpoint_open(&own);
	qp = ud_create(&own, IBV_QPT_UD);
	if (qp == NULL || ud_ready(qp, 0x80010000) != EPERM)
		return 3;
	if (ud_ready(qp, UD_QKEY) != 0)
		return 4;
	/* A thread of the engine copies its memory; datagrams are the same. */
	e = own;
	ah = ud_self(&e, GID_INDEX);
	for (int i = 0; i < 100; i++)
		ud_one_datagram(&e, ah, qp, qp, &wc);
	return ibv_destroy_ah(ah) != 0 || ibv_destroy_qp(qp) != 0 ? 5 : 0;
}

/* hostile H-62: controlled Q_Keys. */
Test(datagram, controlled_qkeys_are_for_privileged_programs)
{
	struct ibv_qp *qp = ud_create(&e, IBV_QPT_UD);
	int status;
	pid_t pid;

	cr_assert_not_null(qp);
	if (geteuid() == 0)
		cr_expect_eq(ud_ready(qp, 0x80010000), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(as_nobody());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends with %#x",
		  (unsigned int)status);
}

/* ---- an error of the send queue (SQE) ---- */

static void fail_with_four_behind(struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey + 1 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = UD_QKEY;
	for (int i = 0; i < 5; i++) {
		cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
		sge.lkey = e.mr->lkey;
	}
}

static void poll_failed(struct ibv_cq *cq)
{
	struct ibv_wc wc[5];

	poll_completions(cq, wc, 5, "the request that fails, and those behind it");
	cr_expect_eq(wc[0].status, IBV_WC_LOC_PROT_ERR);
	for (int i = 1; i < 5; i++)
		cr_expect_eq(wc[i].status, IBV_WC_WR_FLUSH_ERR);
}

static void await_event(struct ibv_comp_channel *channel)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "five requests did not complete");
	cr_assert_eq(ibv_get_cq_event(channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

/* Its engine has seen all that `qp` posted: the last request arrives, and an answer to `qp`. */
static void await_all_of(struct ibv_qp *qp, struct ibv_qp *peer, struct ibv_ah *ah)
{
	struct ibv_wc wc[2];

	ud_receive(&e, peer, 0, 512);
	cr_assert_eq(ud_send(&e, qp, ah, peer->qp_num, UD_QKEY, 8192, 8), 0);
	poll_completions(e.cq, wc, 1, "the last datagram");
	ud_receive(&e, qp, 0, 512);
	cr_assert_eq(ud_send(&e, peer, ah, qp->qp_num, UD_QKEY, 8192, 8), 0);
	poll_completions(e.cq, wc, 2, "the answer");
}

/* A queue pair whose sends have a CQ of their own, and one that sends back. */
struct sender {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp, *peer;
	struct ibv_ah *ah;
	uint32_t length; /* of the send queue */
};

static void open_sender(struct sender *s)
{
	struct ibv_qp_init_attr init = { .recv_cq = e.cq,
					 .cap = { UD_DEPTH, UD_DEPTH, 1, 1, 0 },
					 .qp_type = IBV_QPT_UD };

	s->channel = ibv_create_comp_channel(e.context);
	s->cq = ibv_create_cq(e.context, 4 * UD_DEPTH, NULL, s->channel, 0);
	init.send_cq = s->cq;
	s->qp = ibv_create_qp(e.pd, &init);
	cr_assert(s->cq != NULL && s->qp != NULL, "%m");
	s->length = init.cap.max_send_wr;
	s->peer = ud_open(&e, UD_QKEY);
	s->ah = ud_self(&e, GID_INDEX);
	cr_assert_eq(ud_ready(s->qp, UD_QKEY), 0);
}

static void close_sender(struct sender *s)
{
	cr_expect_eq(ibv_destroy_ah(s->ah), 0);
	cr_expect_eq(ibv_destroy_qp(s->qp), 0);
	cr_expect_eq(ibv_destroy_qp(s->peer), 0);
	cr_expect_eq(ibv_destroy_cq(s->cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(s->channel), 0);
}

static void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static int send_one(struct sender *s)
{
	return ud_send(&e, s->qp, s->ah, s->qp->qp_num, UD_QKEY, 8192, 8);
}

/* Fills the queue, and nothing more fits before the program polls. */
static void fill(struct sender *s)
{
	for (uint32_t i = 1; i < s->length; i++)
		cr_assert_eq(send_one(s), 0, "%u", i);
	await_all_of(s->qp, s->peer, s->ah);
	cr_expect_eq(send_one(s), ENOMEM);
}

static void poll_full(struct sender *s)
{
	struct ibv_wc wc[4 * UD_DEPTH];

	poll_completions(s->cq, wc, (int)s->length, "all of the queue");
}

/* The flushed requests were not signaled, and do not make room for others. */
Test(datagram, a_send_queue_that_was_in_error_is_as_long_as_before)
{
	struct ibv_wc wc;
	struct sender s;

	open_sender(&s);
	fail_with_four_behind(s.qp, s.ah);
	poll_failed(s.cq);
	to_rts(s.qp);
	fill(&s);
	poll_full(&s);
	cr_expect_eq(send_one(&s), 0);
	poll_completions(s.cq, &wc, 1, "one more");
	close_sender(&s);
}

/* The same if signaled requests have taken their slots before the program polls. */
Test(datagram, flushed_requests_may_be_polled_late)
{
	struct ibv_modify_cq_attr five = { IBV_CQ_ATTR_MODERATE, { 5, 0 } };
	struct sender s;

	open_sender(&s);
	cr_assert_eq(ibv_modify_cq(s.cq, &five), 0);
	cr_assert_eq(ibv_req_notify_cq(s.cq, 0), 0);
	fail_with_four_behind(s.qp, s.ah);
	await_event(s.channel);
	to_rts(s.qp);
	fill(&s);
	poll_failed(s.cq);
	poll_full(&s);
	fill(&s);
	poll_full(&s);
	close_sender(&s);
}
