/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of requests and their completions. */
#include "mix.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SILENCE 60 /* seconds without any completion */

enum message {
	DONE = 1,
	BROKEN
};

static uint32_t end_of_round(struct mix *m)
{
	return (m->round + 1) * m->script.per_round;
}

static uint64_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

static int list_of(struct mix *m, struct mix_qp *q, struct mix_op *op, uint32_t slot,
		   struct ibv_sge *sges)
{
	struct mix_list *l = &q->landing[slot];
	uint32_t i;

	if (op->opcode != IBV_WR_RDMA_READ && op->opcode != IBV_WR_ATOMIC_CMP_AND_SWP &&
	    op->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD) {
		for (i = 0; i < op->pieces; i++)
			sges[i] = (struct ibv_sge){ (uintptr_t)m->source + op->from[i], op->part[i],
						    m->source_mr->lkey };
		return (int)op->pieces;
	}
	l->n = op->pieces;
	memcpy(l->part, op->part, sizeof(l->part));
	mix_guard(l, op->length);
	if (op->opcode == IBV_WR_RDMA_READ && op->target == MIX_OF_AREA)
		memcpy(q->expected[slot], q->out.area + op->offset, op->length);
	return mix_elements(l, m->slots_mr->lkey, sges);
}

/* No octet, no key (C9-88). But rxe checks the key when a READ of no octets comes again. */
static void place(struct mix *m, struct mix_qp *q, const struct mix_op *op, uint64_t *address,
		  uint32_t *rkey)
{
	*address = op->target == MIX_OF_SOURCE	 ? m->source_there + op->offset
		   : op->target == MIX_OF_SHARED ? m->source_there + MIX_SOURCE
						 : q->there.area + op->offset;
	*rkey = op->target == MIX_OF_SOURCE || op->target == MIX_OF_SHARED ? m->source_rkey
		: op->window						   ? q->there.window_rkey
									   : q->there.rkey;
	if (op->length == 0 && (op->opcode != IBV_WR_RDMA_READ || !m->is_ours))
		*rkey = 0x12345678;
}

static bool is_atomic(const struct mix_op *op)
{
	return op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void address_of(struct mix *m, struct mix_qp *q, const struct mix_op *op,
		       struct ibv_send_wr *wr)
{
	if (mix_type(q->number) == IBV_QPT_UD) {
		wr->wr.ud.ah = m->ah;
		wr->wr.ud.remote_qpn = q->there.qpn;
		wr->wr.ud.remote_qkey = MIX_QKEY;
	} else if (is_atomic(op)) {
		place(m, q, op, &wr->wr.atomic.remote_addr, &wr->wr.atomic.rkey);
		wr->wr.atomic.compare_add = op->compare_add;
		wr->wr.atomic.swap = op->swap;
	} else {
		place(m, q, op, &wr->wr.rdma.remote_addr, &wr->wr.rdma.rkey);
	}
}

/* A write with the key of an invalidated window, or else beyond the end of the region. */
static void spoil(struct mix_qp *q, struct mix_op *op, struct ibv_send_wr *wr, struct ibv_sge *sge,
		  uint32_t lkey, uint8_t *memory, bool invalidated)
{
	op->opcode = wr->opcode = IBV_WR_RDMA_WRITE;
	op->signaled = true;
	*sge = (struct ibv_sge){ (uintptr_t)memory, 600, lkey };
	op->length = 600;
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->wr.rdma.remote_addr = q->there.area;
	wr->wr.rdma.rkey = q->there.window_rkey;
	if (!invalidated) {
		wr->wr.rdma.rkey = q->there.rkey;
		wr->wr.rdma.remote_addr = q->there.area + MIX_AREA + 8 * MIX_WORDS - 599;
	}
}

static void count_shared(struct mix *m, const struct mix_op *op, bool sure)
{
	if (op->target == MIX_OF_SHARED && is_atomic(op))
		*(sure ? &m->shared_sure : &m->shared_maybe) += 1;
}

/*
 * rxe's own fences can wait for ever after a repetition. So its program waits for all its requests itself before it
 * posts one with a fence.
 */
static bool next_has_fence(struct mix *m, struct mix_qp *q)
{
	struct mix_way look = q->out;
	struct mix_op op;

	look.area = NULL;
	if (m->is_ours || look.next == end_of_round(m))
		return false;
	mix_op(&m->script, &look, m->source, &op);
	return op.fence;
}

static void post(struct mix *m, struct mix_qp *q)
{
	struct mix_end e = mix_end_of(m, q);
	struct ibv_sge sges[MIX_PIECES];
	struct ibv_send_wr *bad, wr = { .sg_list = sges };
	uint32_t slot = q->posted % MIX_WINDOW;
	struct mix_op *op = &q->ops[slot];
	bool invalidated = q->out.invalidated && q->posted % m->script.per_round != 0;
	uint8_t copy[64];
	int error;

	mix_op(&m->script, &q->out, m->source, op);
	op->signaled |= next_has_fence(m, q);
	op->fence &= m->is_ours;
	wr.wr_id = (uint64_t)q->number << 32 | q->posted;
	wr.opcode = op->opcode;
	wr.num_sge = list_of(m, q, op, slot, sges);
	wr.imm_data = htonl(q->posted);
	if (op->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = q->there.window_rkey;
	address_of(m, q, op, &wr);
	if (op->use_inline && op->length <= sizeof(copy) && op->opcode != IBV_WR_RDMA_READ &&
	    !is_atomic(op)) {
		mix_copy(op, m->source, copy);
		sges[0] = (struct ibv_sge){ (uintptr_t)copy, op->length, 0 };
		wr.num_sge = 1;
		wr.send_flags |= IBV_SEND_INLINE;
	}
	if (e.how == MIX_BAD_REQUEST && e.role == m->role &&
	    q->posted % m->script.per_round == e.at) {
		wr.send_flags = 0;
		spoil(q, op, &wr, sges, m->source_mr->lkey, m->source, invalidated);
	}
	wr.send_flags |= (op->signaled ? IBV_SEND_SIGNALED : 0u) |
			 (op->fence ? IBV_SEND_FENCE : 0u) |
			 (mix_roll(m, 4) == 0 ? IBV_SEND_SOLICITED : 0u);
	error = ibv_post_send(q->qp, &wr, &bad);
	if (error != 0)
		mix_fail(m, q, "request %u (opcode %d): %s", q->posted, op->opcode,
			 strerror(error));
	memset(copy, 0xee, sizeof(copy)); /* inline octets were taken */
	q->posted++;
}

static void check_shared(struct mix *m, struct mix_qp *q, uint64_t value, uint32_t number)
{
	if (value < q->shared_seen)
		mix_fail(m, q, "request %u found %ju in the shared word, after %ju", number,
			 (uintmax_t)value, (uintmax_t)q->shared_seen);
	q->shared_seen = value + 1;
}

/* What a READ or an atomic brought. */
static void check_result(struct mix *m, struct mix_qp *q, uint32_t number)
{
	uint32_t slot = number % MIX_WINDOW;
	struct mix_op *op = &q->ops[slot];
	const char *wrong = NULL;
	uint64_t value;

	if (op->opcode == IBV_WR_RDMA_READ)
		wrong = mix_wrong(&q->landing[slot],
				  op->target == MIX_OF_SOURCE ? m->source + op->offset
							      : q->expected[slot],
				  op->length);
	if (is_atomic(op)) {
		memcpy(&value, q->landing[slot].memory, 8);
		if (op->target == MIX_OF_SHARED)
			check_shared(m, q, value, number);
		else
			wrong = mix_wrong(&q->landing[slot], (uint8_t *)&op->before, 8);
	}
	if (wrong != NULL)
		mix_fail(m, q, "result of request %u (opcode %d, %s): %s", number, op->opcode,
			 op->target == MIX_OF_SOURCE ? "constant" : "changing", wrong);
}

static enum ibv_wc_opcode completed_as(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

static void succeeded(struct mix *m, struct mix_qp *q, const struct ibv_wc *wc, uint32_t number)
{
	struct mix_end e = mix_end_of(m, q);
	struct mix_op *op = &q->ops[number % MIX_WINDOW];

	if (q->send_failed)
		mix_fail(m, q, "request %u succeeded after one that failed", number);
	if (e.how == MIX_BAD_REQUEST && e.role == m->role && number % m->script.per_round >= e.at)
		mix_fail(m, q, "request %u succeeded, although it was bad or came after a bad one",
			 number);
	if (!op->signaled)
		mix_fail(m, q, "request %u completed, and was not signaled", number);
	if (wc->opcode != completed_as(op->opcode))
		mix_fail(m, q, "request %u (opcode %d) completed as %d", number, op->opcode,
			 wc->opcode);
	if ((is_atomic(op) || op->opcode == IBV_WR_RDMA_READ) && wc->byte_len != op->length)
		mix_fail(m, q, "request %u (opcode %d) brought %u octets, not %u", number,
			 op->opcode, wc->byte_len, op->length);
}

/* The other end answers nothing after the bad request, so what was lost of its answers before never comes. */
static bool right_end(struct mix *m, struct mix_qp *q, enum ibv_wc_status status, uint32_t number)
{
	struct mix_end e = mix_end_of(m, q);
	uint32_t n = number % m->script.per_round;
	bool mine = e.role == m->role, silent = status == IBV_WC_RETRY_EXC_ERR;

	if (e.how == MIX_BAD_REQUEST && mine && n == e.at)
		return silent || status == IBV_WC_REM_ACCESS_ERR;
	if (e.how == MIX_BAD_REQUEST && mine && n < e.at && m->unordered && silent)
		return true;
	if (e.how == MIX_OWN_ERROR && !mine && silent)
		return true;
	return status == IBV_WC_WR_FLUSH_ERR;
}

static void failed(struct mix *m, struct mix_qp *q, const struct ibv_wc *wc, uint32_t number)
{
	struct mix_end e = mix_end_of(m, q);
	bool first = !q->send_failed, mine = e.role == m->role,
	     right = first ? right_end(m, q, wc->status, number)
			   : wc->status == IBV_WC_WR_FLUSH_ERR;

	if (e.how == MIX_NO_BREAK || !right)
		mix_fail(
			m, q,
			"request %u (opcode %d, %u octets) ended with %s, vendor %#x (break %d at %u of %s)",
			number, q->ops[number % MIX_WINDOW].opcode,
			q->ops[number % MIX_WINDOW].length, ibv_wc_status_str(wc->status),
			wc->vendor_err, e.how, e.at, mine ? "mine" : "theirs");
	if (!first && number != q->completed)
		mix_fail(m, q, "request %u was flushed, not %u", number, q->completed);
	q->send_failed = true;
}

static void sent(struct mix *m, const struct ibv_wc *wc)
{
	uint32_t number = (uint32_t)wc->wr_id, n = (uint32_t)(wc->wr_id >> 32);
	struct mix_qp *q = &m->qps[n < MIX_QPS ? n : 0];

	if (n >= MIX_QPS || number - q->completed >= q->posted - q->completed)
		errx(1, "a completion of request %u of queue pair %u (%u to %u wait)", number, n,
		     q->completed, q->posted);
	for (n = q->completed; n != number; n++)
		if (q->ops[n % MIX_WINDOW].signaled)
			mix_fail(m, q, "request %u completed with %s before %u, whose opcode is %d",
				 number, ibv_wc_status_str(wc->status), n,
				 q->ops[n % MIX_WINDOW].opcode);
	m->completions++;
	if (wc->status == IBV_WC_SUCCESS)
		succeeded(m, q, wc, number);
	else
		failed(m, q, wc, number);
	for (; q->completed != number + 1; q->completed++) {
		count_shared(m, &q->ops[q->completed % MIX_WINDOW], wc->status == IBV_WC_SUCCESS);
		if (wc->status == IBV_WC_SUCCESS)
			check_result(m, q, q->completed);
	}
}

static bool may_post(struct mix *m, struct mix_qp *q)
{
	uint32_t waiting = q->posted - q->completed;

	return q->posted < end_of_round(m) && waiting < MIX_WINDOW &&
	       (waiting == 0 || !next_has_fence(m, q));
}

static void post_some(struct mix *m)
{
	struct mix_qp *q;

	for (q = m->qps; q < m->qps + MIX_QPS; q++) {
		if (mix_roll(m, 3) > 0)
			mix_post_receives(m, q);
		while (may_post(m, q) && mix_roll(m, 8) > 0)
			post(m, q);
	}
}

/* An end leaves a queue pair by itself, and tells the other one, which would otherwise wait for its timeouts. */
static void break_some(struct mix *m)
{
	struct mix_end e;
	struct mix_qp *q;
	struct mix_note n = { BROKEN, 0 };

	for (q = m->qps; q < m->qps + MIX_RC; q++) {
		e = mix_end_of(m, q);
		if (e.how != MIX_OWN_ERROR || e.role != m->role || q->renew ||
		    q->completed - m->round * m->script.per_round < e.at)
			continue;
		mix_to_state(m, q, IBV_QPS_ERR);
		q->renew = true;
		n.qp = q->number;
		mix_tell(m, &n, sizeof(n));
	}
}

static bool in_error(struct mix_qp *q)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	return ibv_query_qp(q->qp, &a, IBV_QP_STATE, &init) == 0 && a.qp_state == IBV_QPS_ERR;
}

static bool qp_done(struct mix *m, struct mix_qp *q)
{
	/* rxe does not flush a receive request that comes after the error */
	bool flushes = q->number < MIX_SHARING && m->is_ours;

	if (q->posted != end_of_round(m) || q->completed != q->posted)
		return false;
	if (mix_type(q->number) != IBV_QPT_RC)
		return true;
	if (mix_end_of(m, q).how == MIX_NO_BREAK)
		return mix_all_received(m, q);
	return (!flushes || q->receives_done == q->receives_posted) && in_error(q);
}

static void listen_to_other(struct mix *m)
{
	struct mix_note n;
	ssize_t length = -1;

	while (!m->other_done &&
	       (length = recv(m->tcp, &n, sizeof(n), MSG_DONTWAIT | MSG_PEEK)) == sizeof(n)) {
		mix_hear(m, &n, sizeof(n));
		m->last = n;
		m->other_done = n.what == DONE;
		if (n.what == BROKEN)
			mix_to_state(m, &m->qps[n.qp], IBV_QPS_ERR);
	}
	if (length == 0)
		errx(1, "the other end is gone");
}

static bool finished(struct mix *m)
{
	struct mix_note n = { DONE, 0 };
	unsigned int i;

	for (i = 0; i < MIX_QPS && !m->told_done; i++)
		if (!qp_done(m, &m->qps[i]))
			return false;
	if (!m->told_done)
		mix_tell(m, &n, sizeof(n));
	m->told_done = true;
	return m->other_done;
}

static int poll_all(struct mix *m)
{
	struct ibv_wc wc[8];
	int i, n, total = 0;

	while ((n = ibv_poll_cq(m->sends, 8, wc)) > 0)
		for (i = 0, total += n; i < n; i++)
			sent(m, &wc[i]);
	if (n == 0)
		while ((n = ibv_poll_cq(m->receives, 8, wc)) > 0)
			for (i = 0, total += n; i < n; i++)
				mix_received(m, &wc[i]);
	if (n < 0)
		errx(1, "ibv_poll_cq: %d", n);
	return total;
}

static void take_events(struct mix *m)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(m->channel, &cq, &context) != 0)
		err(1, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

/*
 * Sleeps until there is a completion or a note. True: it took completions. rxe's timer runs on while its peer is not
 * ready, and uses up its retries, so nobody sleeps without receive requests.
 */
static bool await_something(struct mix *m)
{
	struct mix_qp *q;
	struct pollfd fds[] = { { .fd = m->channel->fd, .events = POLLIN },
				{ .fd = m->tcp, .events = POLLIN } };
	bool took;
	int n;

	if (ibv_req_notify_cq(m->sends, 0) != 0 || ibv_req_notify_cq(m->receives, 0) != 0)
		err(1, "ibv_req_notify_cq");
	if (poll_all(m) > 0)
		return true;
	for (q = m->qps; q < m->qps + MIX_QPS; q++)
		mix_post_receives(m, q);
	n = poll(fds, m->other_done ? 1 : 2, 1000);
	took = n == 0 && poll_all(m) > 0;
	/* this process may have had no processor since the time was over, so its event may be there now */
	if (took && (n = poll(fds, 1, 1000)) != 1)
		errx(1, "round %u: a completion came, but no event", m->round);
	if (n > 0 && (fds[0].revents & POLLIN) != 0)
		take_events(m);
	return took;
}

static void silent(struct mix *m)
{
	struct mix_qp *q;

	for (q = m->qps; q < m->qps + MIX_QPS; q++)
		if (!qp_done(m, q))
			mix_say_wait(m, q);
	if (m->told_done)
		warnx("this end has all, and waits for the other one");
	errx(1, "round %u: nothing came for %d s, the other end said last: %s %u", m->round,
	     SILENCE,
	     m->last.what == DONE     ? "done"
	     : m->last.what == BROKEN ? "broken queue pair"
				      : "none",
	     m->last.qp);
}

/* rxe flushes receive requests some time after the error, but none after the reset. */
static void take_late(struct mix *m)
{
	struct mix_qp *q;

	for (q = m->qps; q < m->qps + MIX_RC; q++)
		if (q->renew)
			mix_to_state(m, q, IBV_QPS_RESET);
	poll_all(m);
}

void mix_run_round(struct mix *m)
{
	uint64_t last = seconds();
	struct mix_qp *q;

	m->told_done = m->other_done = false;
	m->last = (struct mix_note){ 0 };
	while (!finished(m)) {
		listen_to_other(m);
		post_some(m);
		break_some(m);
		if (poll_all(m) > 0 || ((!m->told_done || !m->other_done) && await_something(m)))
			last = seconds();
		if (seconds() - last > SILENCE)
			silent(m);
	}
	for (q = m->qps; q < m->qps + MIX_RC; q++)
		q->renew = mix_end_of(m, q).how != MIX_NO_BREAK;
	if (!m->is_ours)
		take_late(m);
}
