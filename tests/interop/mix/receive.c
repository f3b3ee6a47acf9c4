/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes from the other end: receive requests, their completions, and memory that it writes. */
#include "mix.h"

#include <arpa/inet.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>

#define GRH 40

static void post(struct mix *m, struct mix_qp *q, struct mix_list *l, uint64_t id)
{
	struct ibv_sge sges[MIX_PIECES];
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = sges };
	int error;

	wr.num_sge = mix_elements(l, m->slots_mr->lkey, sges);
	error = q == NULL ? ibv_post_srq_recv(m->srq, &wr, &bad) : ibv_post_recv(q->qp, &wr, &bad);
	if (error != 0)
		errx(1, "a receive request: %s", strerror(error));
}

/* The next request of the other end that needs a receive request; false: there is none in this run. */
static bool next_message(struct mix *m, struct mix_way *way, struct mix_op *op)
{
	while (way->next < m->script.rounds * m->script.per_round) {
		mix_op(&m->script, way, m->source, op);
		if (op->consumes)
			return true;
	}
	return false;
}

static uint64_t id_of(struct mix_qp *q, uint32_t n)
{
	return (uint64_t)q->number << 32 | n;
}

static bool shares(struct mix_qp *q)
{
	return q->number >= MIX_SHARING && q->number < MIX_RC;
}

/* Often exactly as much room as the message needs, and none for a WRITE. */
static bool post_next(struct mix *m, struct mix_qp *q)
{
	struct mix_list *l = &q->room[q->receives_posted % MIX_DEPTH];
	uint32_t room, used = 0;
	struct mix_op op;

	if (mix_type(q->number) == IBV_QPT_RC) {
		if (!next_message(m, &q->ahead, &op))
			return false;
		used = op.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : op.length;
		room = used +
		       (mix_roll(m, 2) == 0 ? 0 : mix_roll(m, (uint32_t)MIX_LARGEST - used + 1));
	} else {
		room = mix_type(q->number) == IBV_QPT_UD ? m->script.mtu + GRH : 65537;
	}
	mix_divide(m, l, room);
	if (room == 0)
		l->n = mix_roll(m, 2);
	mix_guard(l, mix_type(q->number) == IBV_QPT_RC ? used : room);
	post(m, q, l, id_of(q, q->receives_posted++));
	return true;
}

void mix_post_receives(struct mix *m, struct mix_qp *q)
{
	if (shares(q) || q->send_failed || q->receive_failed)
		return;
	while (q->receives_posted - q->receives_done < q->depth && post_next(m, q))
		;
}

static void post_to_pool(struct mix *m, uint32_t i)
{
	mix_divide(m, &m->pool[i], (uint32_t)MIX_LARGEST);
	mix_guard(&m->pool[i], (uint32_t)MIX_LARGEST);
	post(m, NULL, &m->pool[i], i);
}

void mix_fill_pool(struct mix *m)
{
	uint32_t i;

	for (i = 0; i < MIX_POOL; i++)
		post_to_pool(m, i);
}

static void check_flags(struct mix *m, struct mix_qp *q, const struct ibv_wc *wc,
			const struct mix_op *op, uint32_t number)
{
	bool imm = op->opcode == IBV_WR_SEND_WITH_IMM || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool inv = op->opcode == IBV_WR_SEND_WITH_INV;
	/* rxe hands the kernel's number of this flag to the program, or it translates the number */
	unsigned int with_inv = IBV_WC_WITH_INV | (m->is_ours ? 0u : IBV_WC_IP_CSUM_OK);
	enum ibv_wc_opcode opcode =
		op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;

	if (wc->opcode != opcode)
		mix_fail(m, q, "request %u was received as %d, not %d", number, wc->opcode, opcode);
	if (((wc->wc_flags & IBV_WC_WITH_IMM) != 0) != imm ||
	    (imm && ntohl(wc->imm_data) != number))
		mix_fail(m, q, "request %u: flags %#x, immediate %u", number, wc->wc_flags,
			 ntohl(wc->imm_data));
	if (((wc->wc_flags & with_inv) != 0) != inv ||
	    (inv && wc->invalidated_rkey != q->here.window_rkey))
		mix_fail(m, q, "request %u: flags %#x, invalidated %#x", number, wc->wc_flags,
			 wc->invalidated_rkey);
}

static void check_message(struct mix *m, struct mix_qp *q, const struct ibv_wc *wc,
			  struct mix_list *l)
{
	const char *wrong;
	struct mix_op op;
	uint32_t number;

	if (!next_message(m, &q->got, &op))
		mix_fail(m, q, "a message too many");
	number = q->got.next - 1;
	check_flags(m, q, wc, &op, number);
	if (wc->byte_len != op.length)
		mix_fail(m, q, "request %u has %u octets, not %u", number, wc->byte_len, op.length);
	mix_copy(&op, m->source, m->scratch);
	wrong = mix_wrong(l, m->scratch, wc->opcode == IBV_WC_RECV ? op.length : 0);
	if (wrong != NULL)
		mix_fail(m, q, "message of request %u (opcode %d): %s", number, op.opcode, wrong);
}

/* Unreliable: which request was it? Prepares all that may have been posted so far. */
static void know_all(struct mix *m, struct mix_qp *q)
{
	uint32_t end = (m->round + 1) * m->script.per_round;

	if (q->all == NULL) {
		q->all = calloc((size_t)m->script.rounds * m->script.per_round, sizeof(*q->all));
		if (q->all == NULL)
			err(1, "memory");
	}
	while (q->n_all < end)
		mix_op(&m->script, &q->in, m->source, &q->all[q->n_all++]);
}

static bool is(struct mix *m, const struct mix_op *op, uint32_t number, const struct ibv_wc *wc,
	       const struct mix_list *l, uint32_t skipped)
{
	bool write = op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool imm = write || op->opcode == IBV_WR_SEND_WITH_IMM;

	if (!op->consumes || op->length + skipped != wc->byte_len ||
	    (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) != write ||
	    ((wc->wc_flags & IBV_WC_WITH_IMM) != 0) != imm ||
	    (imm && ntohl(wc->imm_data) != number))
		return false;
	if (write)
		return true;
	mix_copy(op, m->source, m->scratch + skipped);
	return mix_wrong(l, m->scratch, wc->byte_len) == NULL;
}

/* A datagram's header is the device's own, so it is taken as it is. */
static void header_from(const struct mix_list *l, uint8_t *to, uint32_t length)
{
	const uint8_t *at = l->memory;
	uint32_t i, n;

	for (i = 0; i < l->n && length > 0; at += l->part[i++] + MIX_GAP) {
		n = l->part[i] < length ? l->part[i] : length;
		memcpy(to, at, n);
		to += n;
		length -= n;
	}
}

static void check_unreliable(struct mix *m, struct mix_qp *q, const struct ibv_wc *wc,
			     struct mix_list *l)
{
	uint32_t i, skipped = mix_type(q->number) == IBV_QPT_UD ? GRH : 0;

	know_all(m, q);
	header_from(l, m->scratch, skipped);
	for (i = m->unordered ? 0 : q->low; i < q->n_all; i++)
		if (is(m, &q->all[i], i, wc, l, skipped)) {
			q->low = i + 1;
			q->arrived++;
			return;
		}
	mix_fail(m, q, "%u octets (flags %#x, immediate %u, opcode %d) are no request after %u",
		 wc->byte_len, wc->wc_flags, ntohl(wc->imm_data), wc->opcode, q->low);
}

static struct mix_qp *receiver(struct mix *m, const struct ibv_wc *wc)
{
	unsigned int i;

	for (i = 0; i < MIX_QPS; i++)
		if (m->qps[i].qp->qp_num == wc->qp_num)
			return &m->qps[i];
	errx(1, "a completion of queue pair %#x, which does not exist", wc->qp_num);
}

void mix_received(struct mix *m, const struct ibv_wc *wc)
{
	struct mix_qp *q = receiver(m, wc);
	struct mix_list *l =
		shares(q) ? &m->pool[wc->wr_id] : &q->room[(uint32_t)wc->wr_id % MIX_DEPTH];

	if (!shares(q) && wc->wr_id != id_of(q, q->receives_done))
		mix_fail(m, q, "receive request %#jx completed, not %#jx", (uintmax_t)wc->wr_id,
			 (uintmax_t)id_of(q, q->receives_done));
	q->receives_done++;
	if (wc->status != IBV_WC_SUCCESS) {
		/* rxe ends the next receive request with the error of a WRITE that needs none */
		bool theirs =
			!m->is_ours && !q->receive_failed && wc->status == IBV_WC_REM_ACCESS_ERR;

		if ((wc->status != IBV_WC_WR_FLUSH_ERR && !theirs) ||
		    mix_end_of(m, q).how == MIX_NO_BREAK)
			mix_fail(m, q, "a receive request ended with %s, after request %u",
				 ibv_wc_status_str(wc->status), q->got.next);
		q->receive_failed = true;
	} else if (q->receive_failed) {
		mix_fail(m, q, "a message after a flushed receive request");
	} else if (mix_type(q->number) == IBV_QPT_RC) {
		m->received++;
		check_message(m, q, wc, l);
	} else {
		check_unreliable(m, q, wc, l);
	}
	if (shares(q))
		post_to_pool(m, (uint32_t)wc->wr_id);
}

static bool missing_before(struct mix *m, struct mix_qp *q, uint32_t end, struct mix_op *op,
			   uint32_t *number)
{
	struct mix_way look = q->got;

	while (look.next < end) {
		*number = look.next;
		mix_op(&m->script, &look, m->source, op);
		if (op->consumes)
			return true;
	}
	return false;
}

bool mix_missing(struct mix *m, struct mix_qp *q, struct mix_op *op, uint32_t *number)
{
	return missing_before(m, q, (m->round + 1) * m->script.per_round, op, number);
}

bool mix_all_received(struct mix *m, struct mix_qp *q)
{
	struct mix_op op;
	uint32_t number;

	return !mix_missing(m, q, &op, &number);
}

static void compare(struct mix *m, struct mix_qp *q)
{
	uint64_t words[MIX_WORDS];
	size_t i;

	memcpy(words, q->area + MIX_AREA, sizeof(words));
	for (i = 0; i < MIX_AREA; i++)
		if (q->area[i] != q->in.area[i])
			mix_fail(m, q, "octet %zu of its memory is %#x, not %#x, after request %u",
				 i, q->area[i], q->in.area[i], q->in.next);
	for (i = 0; i < MIX_WORDS; i++)
		if (words[i] != q->in.words[i])
			mix_fail(m, q, "word %zu is %#jx, not %#jx", i, (uintmax_t)words[i],
				 (uintmax_t)q->in.words[i]);
}

/* After a round that has ended at both ends. */
void mix_check_memory(struct mix *m)
{
	struct mix_op op;
	struct mix_qp *q;
	struct mix_end e;
	uint32_t end, number;

	for (q = m->qps; q < m->qps + MIX_RC; q++) {
		e = mix_end_of(m, q);
		end = (m->round + (e.how == MIX_NO_BREAK)) * m->script.per_round;
		if (e.how == MIX_BAD_REQUEST && e.role != m->role)
			end += e.at;
		else if (e.how != MIX_NO_BREAK)
			continue;
		if (missing_before(m, q, end, &op, &number))
			mix_fail(m, q, "the message of request %u did not come", number);
		while (q->in.next < end)
			mix_op(&m->script, &q->in, m->source, &op);
		compare(m, q);
	}
}

/* Each octet of an unreliable connection's memory is what it was, or what some request wrote. */
static void check_possible(struct mix *m, struct mix_qp *q)
{
	uint8_t *possible = calloc(MIX_AREA, 1);
	const struct mix_op *op;
	uint32_t i, j;

	if (possible == NULL)
		err(1, "memory");
	know_all(m, q);
	for (i = 0; i < MIX_AREA; i++)
		possible[i] = q->area[i] == m->source[q->number + i];
	for (op = q->all; op < q->all + q->n_all; op++) {
		if (op->opcode != IBV_WR_RDMA_WRITE && op->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
			continue;
		mix_copy(op, m->source, m->scratch);
		for (j = 0; j < op->length; j++)
			possible[op->offset + j] |= q->area[op->offset + j] == m->scratch[j];
	}
	for (i = 0; i < MIX_AREA; i++)
		if (!possible[i])
			mix_fail(m, q, "octet %u is %#x, which nobody wrote", i, q->area[i]);
	free(possible);
}

void mix_check_end(struct mix *m)
{
	struct {
		uint64_t sure, maybe;
	} here = { m->shared_sure, m->shared_maybe }, there;
	uint64_t word;
	unsigned int i;

	for (i = MIX_RC; i < MIX_RC + MIX_UC; i++)
		check_possible(m, &m->qps[i]);
	mix_tell(m, &here, sizeof(here));
	mix_hear(m, &there, sizeof(there));
	memcpy(&word, m->source + MIX_SOURCE, 8);
	if (word < there.sure || word > there.sure + there.maybe)
		errx(1, "the shared word is %ju after %ju additions and %ju that were flushed",
		     (uintmax_t)word, (uintmax_t)there.sure, (uintmax_t)there.maybe);
	for (i = MIX_RC; i < MIX_QPS; i++)
		if (m->qps[i].arrived == 0 && !m->unordered)
			mix_fail(m, &m->qps[i], "no message arrived");
}
