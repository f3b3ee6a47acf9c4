/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests, completions, events, and the contents of memory. */
#include "peer.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} opcodes[] = {
	{ "send", IBV_WR_SEND },
	{ "send_imm", IBV_WR_SEND_WITH_IMM },
	{ "write", IBV_WR_RDMA_WRITE },
	{ "write_imm", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "read", IBV_WR_RDMA_READ },
	{ "cas", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "add", IBV_WR_ATOMIC_FETCH_AND_ADD },
};

static enum ibv_wr_opcode opcode(struct peer *p)
{
	const char *name = peer_text(p, "op", NULL);
	size_t i;

	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		if (strcmp(opcodes[i].name, name) == 0)
			return opcodes[i].opcode;
	errx(2, "unknown operation '%s'", name);
}

/* Offsets and lengths are not checked against the region, because violations are tested. */
static struct ibv_sge element(struct peer *p)
{
	struct peer_mr *m = peer_mr(p);

	return (struct ibv_sge){ .addr = (uintptr_t)m->memory + peer_number_or(p, "off", 0),
				 .length = (uint32_t)peer_number(p, "len"),
				 .lkey = (uint32_t)peer_number_or(p, "lkey", m->mr->lkey) };
}

static void destination(struct peer *p, struct peer_qp *q, struct ibv_send_wr *wr)
{
	uint64_t address = peer_number_or(p, "raddr", 0);
	uint32_t rkey = (uint32_t)peer_number_or(p, "rkey", 0);

	if (q->qp->qp_type == IBV_QPT_UD) {
		uint64_t ah = peer_number(p, "ah");

		if (ah >= p->n_ahs)
			errx(2, "no ah %ju", (uintmax_t)ah);
		wr->wr.ud.ah = p->ahs[ah];
		wr->wr.ud.remote_qpn = (uint32_t)peer_number(p, "dqpn");
		wr->wr.ud.remote_qkey = (uint32_t)peer_number(p, "qkey");
	} else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = address;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = peer_number_or(p, "add", 1);
		wr->wr.atomic.swap = peer_number_or(p, "swap", 0);
	} else {
		wr->wr.rdma.remote_addr = address;
		wr->wr.rdma.rkey = rkey;
	}
}

static void do_send(struct peer *p)
{
	struct peer_qp *q = peer_qp(p);
	struct ibv_sge sge = element(p);
	struct ibv_send_wr *bad,
		wr = { .sg_list = &sge,
		       .num_sge = 1,
		       .opcode = opcode(p),
		       .wr_id = peer_number_or(p, "id", 0),
		       .imm_data = htonl((uint32_t)peer_number_or(p, "imm", 0)),
		       .send_flags = (unsigned int)peer_number_or(p, "flags", IBV_SEND_SIGNALED) };
	uint64_t i, times = peer_number_or(p, "times", 1);
	int error = 0;

	destination(p, q, &wr);
	q->posted_ns = peer_now_ns();
	for (i = 0; i < times && error == 0; i++, wr.wr_id++)
		error = ibv_post_send(q->qp, &wr, &bad);
	peer_result(p, "ibv_post_send", error);
}

static void do_recv(struct peer *p)
{
	struct ibv_sge sge = element(p);
	struct ibv_recv_wr *bad,
		wr = { .sg_list = &sge, .num_sge = 1, .wr_id = peer_number_or(p, "id", 0) };
	uint64_t i, times = peer_number_or(p, "times", 1);
	int error = 0;

	for (i = 0; i < times && error == 0; i++, wr.wr_id++)
		error = ibv_post_recv(peer_qp(p)->qp, &wr, &bad);
	peer_result(p, "ibv_post_recv", error);
}

/*
 * ID:STATUS:LENGTH:US,...: at most N completions that came within MS. US counts from the last
 * `send`.
 */
static void do_poll(struct peer *p)
{
	struct peer_qp *q = peer_qp(p);
	struct ibv_cq *cq = strcmp(peer_text(p, "cq", "send"), "send") == 0 ? q->send : q->recv;
	uint64_t end = peer_now_ns() + peer_number_or(p, "ms", 10000) * 1000000;
	uint64_t missing = peer_number_or(p, "n", 1);
	struct ibv_wc wc;
	int n;

	peer_say(p, "ok wc=");
	while (missing > 0) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0)
			errx(1, "ibv_poll_cq: %d", n);
		if (n == 0 && peer_now_ns() > end)
			return;
		if (n == 0)
			continue;
		peer_say(p, "%ju:%d:%u:%ju,", (uintmax_t)wc.wr_id, wc.status,
			 wc.status == IBV_WC_SUCCESS ? wc.byte_len : 0,
			 (uintmax_t)((peer_now_ns() - q->posted_ns) / 1000));
		missing--;
	}
}

static void do_bind(struct peer *p)
{
	struct peer_mr *m = peer_mr(p);
	uint64_t n = peer_number(p, "mw");
	struct ibv_mw_bind b = {
		.wr_id = peer_number_or(p, "id", 0),
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = m->mr,
			       .addr = (uintptr_t)m->memory + peer_number_or(p, "off", 0),
			       .length = peer_number(p, "len"),
			       .mw_access_flags = (unsigned int)peer_number(p, "access") }
	};
	struct ibv_send_wr *bad, wr = { .wr_id = b.wr_id,
					.opcode = IBV_WR_BIND_MW,
					.send_flags = IBV_SEND_SIGNALED };
	int error;

	if (n >= p->n_mws)
		errx(2, "no mw %ju", (uintmax_t)n);
	if (p->mws[n]->type == IBV_MW_TYPE_1) {
		error = ibv_bind_mw(peer_qp(p)->qp, p->mws[n], &b);
	} else {
		wr.bind_mw.mw = p->mws[n];
		wr.bind_mw.rkey = ibv_inc_rkey(p->mws[n]->rkey);
		wr.bind_mw.bind_info = b.bind_info;
		error = ibv_post_send(peer_qp(p)->qp, &wr, &bad);
		p->mws[n]->rkey = wr.bind_mw.rkey;
	}
	peer_result(p, "bind", error);
	if (error == 0)
		peer_say(p, " rkey=%#x", p->mws[n]->rkey);
}

static bool of_qp(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return true;
	default:
		return false;
	}
}

/* The next asynchronous event that comes within MS, and its queue pair. */
static void do_event(struct peer *p)
{
	struct pollfd fd = { .fd = p->context->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	unsigned int i;

	if (poll(&fd, 1, (int)peer_number_or(p, "ms", 1000)) <= 0) {
		peer_say(p, "ok event=none");
		return;
	}
	if (ibv_get_async_event(p->context, &event) != 0)
		err(1, "ibv_get_async_event");
	peer_say(p, "ok event=%d", event.event_type);
	for (i = 0; of_qp(&event) && i < p->n_qps; i++)
		if (p->qps[i].qp == event.element.qp)
			peer_say(p, " qp=%u", i);
	ibv_ack_async_event(&event);
}

/* Sets octet i of a region to seed + i + i / 256, modulo 256. */
static void do_fill(struct peer *p)
{
	struct peer_mr *m = peer_mr(p);
	uint64_t seed = peer_number(p, "seed");
	size_t i;

	for (i = 0; i < m->length; i++)
		m->memory[i] = (uint8_t)(seed + i + i / 256);
	peer_say(p, "ok");
}

static void do_zero(struct peer *p)
{
	struct peer_mr *m = peer_mr(p);

	memset(m->memory, 0, m->length);
	peer_say(p, "ok");
}

/* A checksum (FNV-1a) of a part of a region, to compare two peers. */
static void do_sum(struct peer *p)
{
	struct peer_mr *m = peer_mr(p);
	uint64_t at = peer_number_or(p, "off", 0), end = at + peer_number_or(p, "len", m->length);
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	if (end > m->length || end < at)
		errx(2, "no octet %ju", (uintmax_t)end);
	for (; at < end; at++)
		sum = (sum ^ m->memory[at]) * UINT64_C(0x100000001b3);
	peer_say(p, "ok sum=%#jx", (uintmax_t)sum);
}

const struct peer_command peer_work_commands[] = {
	{ "send", do_send }, { "recv", do_recv },   { "poll", do_poll },
	{ "bind", do_bind }, { "event", do_event }, { "fill", do_fill },
	{ "zero", do_zero }, { "sum", do_sum },	    { NULL, NULL },
};
