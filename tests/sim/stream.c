/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "base/bits.h"
#include "stream.h"

#define COUNTER_OCTETS 64u
#define SLOTS_OF_PAIR  (2 * STREAM_JOBS + STREAM_RECEIVES)

size_t stream_memory(const struct workload *w, uint32_t pairs)
{
	return COUNTER_OCTETS + (size_t)pairs * SLOTS_OF_PAIR * w->slot_octets;
}

/*
 * For each pair a node has slots for its own requests, for the peer's targets and for its receives.
 */
void stream_init(struct stream *s, struct workload *w, struct node_qp *from, struct node_qp *to,
		 uint32_t pair, uint32_t from_node)
{
	uint32_t base = COUNTER_OCTETS + pair * SLOTS_OF_PAIR * w->slot_octets;

	*s = (struct stream){ .w = w,
			      .messages = from->caps.type == QP_TYPE_XRC_RECV ? 0 : w->messages,
			      .from = from,
			      .to = to,
			      .pair = pair,
			      .from_node = from_node,
			      .local_slots = base,
			      .remote_slots = base + STREAM_JOBS * w->slot_octets,
			      .receive_slots = base + 2 * STREAM_JOBS * w->slot_octets };
}

static void release(struct stream *s, const struct node_qp *q, const struct extent *e,
		    const char *what)
{
	if (!extent_release(q, e))
		wrong(s->w, "node %s pair %u: octets beside the %s of a message were written",
		      q->node->name, s->pair, what);
}

/* Posting. */

static uint32_t choose_length(struct workload *w)
{
	struct prng *r = &w->prng;

	if (w->config->bench)
		return 64;
	switch (prng_below(r, 10)) {
	case 0:
		return 0;
	case 1:
		return prng_between(r, 1, 3) * w->mtu; /* exactly */
	case 2:
		return prng_below(r, w->max_message + 1);
	case 3:
	case 4:
		return prng_below(r, 64);
	default:
		return MIN_OF(prng_below(r, 4 * w->mtu), w->max_message);
	}
}

static uint8_t choose_opcode(struct workload *w, bool xrc)
{
	static const uint8_t weighted[] = {
		WORK_SEND,
		WORK_SEND,
		WORK_SEND,
		WORK_SEND_WITH_IMM,
		WORK_RDMA_WRITE,
		WORK_RDMA_WRITE,
		WORK_RDMA_WRITE,
		WORK_RDMA_WRITE_WITH_IMM,
		WORK_RDMA_READ,
		WORK_RDMA_READ,
		WORK_RDMA_READ,
		WORK_ATOMIC_CMP_AND_SWP,
		WORK_ATOMIC_FETCH_AND_ADD,
		WORK_LOCAL_INV,
		/* only on RC: an XRC target has no windows, and other services do not carry it */
		WORK_SEND_WITH_INV,
		WORK_ATOMIC_WRITE,
		WORK_FLUSH,
	};

	if (w->config->bench)
		return prng_below(&w->prng, 2) ? WORK_SEND : WORK_RDMA_WRITE;
	return weighted[prng_below(&w->prng, ARRAY_SIZE(weighted) - (xrc ? 3 : 0))];
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == WORK_ATOMIC_CMP_AND_SWP || opcode == WORK_ATOMIC_FETCH_AND_ADD;
}

static bool consumes(uint8_t opcode)
{
	return opcode == WORK_SEND || opcode == WORK_SEND_WITH_IMM ||
	       opcode == WORK_SEND_WITH_INV || opcode == WORK_RDMA_WRITE_WITH_IMM;
}

static bool uses_remote(uint8_t opcode)
{
	return opcode != WORK_SEND && opcode != WORK_SEND_WITH_IMM &&
	       opcode != WORK_SEND_WITH_INV && opcode != WORK_LOCAL_INV && opcode != WORK_FLUSH;
}

/* Whether the request has neither octets of its own nor elements. */
static bool is_bare(uint8_t opcode)
{
	return opcode == WORK_LOCAL_INV || opcode == WORK_FLUSH;
}

static uint32_t immediate_of(const struct job *j)
{
	return j->key != 0 ? j->key : (uint32_t)j->pattern;
}

/* The owner of the window that a request invalidates. */
static struct node_qp *window_owner(const struct stream *s, const struct job *j)
{
	return j->opcode == WORK_LOCAL_INV ? s->from : s->to;
}

static void prepare_window(struct stream *s, struct job *j)
{
	struct node_qp *owner = window_owner(s, j);

	if (j->opcode == WORK_LOCAL_INV || j->opcode == WORK_SEND_WITH_INV)
		j->key = node_window_in(owner->node, (void *)j->window,
					owner == s->from ? s->local_key : s->remote_key, 0, 8,
					ACCESS_REMOTE_WRITE, owner->caps.qpn);
}

/* The window must be invalid before any completion says so. */
static void check_window(struct stream *s, const struct job *j, const char *end)
{
	if (j->key != 0 && node_region(window_owner(s, j)->node, j->key) != NULL)
		wrong(s->w, "node %s pair %u request %u: %s, but its key is still valid",
		      s->from->node->name, s->pair, j->number, end);
}

/* The word at the target, and its value afterwards. */
static void prepare_atomic(struct stream *s, struct job *j, struct send_work *work)
{
	struct prng *r = &s->w->prng;
	uint32_t at = j->remote.at + GUARD_OCTETS;

	j->remote.pieces = 1;
	j->remote.offset[0] = GUARD_OCTETS;
	j->remote.length[0] = 8;
	j->remote.used = 2 * GUARD_OCTETS + 8;
	j->before = prng_next(r);
	work->swap = prng_next(r);
	work->compare_add = prng_next(r);
	if (j->opcode == WORK_ATOMIC_FETCH_AND_ADD) {
		j->after = j->before + work->compare_add;
		j->counter = prng_chance(r, 0.5);
	} else {
		if (prng_chance(r, 0.5))
			work->compare_add = j->before;
		j->after = work->compare_add == j->before ? work->swap : j->before;
	}
	if (j->counter) {
		j->remote.pieces = 0;
		j->remote.used = 0;
		work->remote_addr = s->remote_base + s->counter;
		s->w->added[1 - s->from_node] += work->compare_add;
		return;
	}
	memcpy(memory_of(s->to, at), &j->before, sizeof(j->before));
	work->remote_addr = s->remote_base + at;
}

static void prepare_remote(struct stream *s, struct job *j, struct send_work *work)
{
	uint32_t slot = s->remote_slots + j->number % STREAM_JOBS * s->w->slot_octets;

	j->remote = (struct extent){ .at = slot };
	work->rkey = s->remote_key;
	if (is_atomic(j->opcode)) {
		prepare_atomic(s, j, work);
		return;
	}
	if (j->opcode == WORK_FLUSH) {
		work->remote_addr = s->remote_base + slot;
		work->flush_length = s->w->slot_octets;
		work->flush_type = FLUSH_GLOBAL;
		work->flush_level = prng_below(&s->w->prng, 2);
	}
	if (!uses_remote(j->opcode))
		return;
	if (j->opcode == WORK_ATOMIC_WRITE) { /* at a multiple of eight octets */
		j->remote.pieces = 1;
		j->remote.offset[0] = GUARD_OCTETS;
		j->remote.length[0] = 8;
		j->remote.used = 2 * GUARD_OCTETS + 8;
	} else {
		extent_cut(&s->w->prng, &j->remote, slot, j->length, 1);
	}
	work->remote_addr = s->remote_base + slot + j->remote.offset[0];
	if (j->opcode == WORK_RDMA_READ)
		extent_fill(s->to, &j->remote, s->w->scratch);
}

static void make_fault(struct stream *s, struct job *j, struct send_work *work,
		       struct work_sge *sge, nanotime now)
{
	switch (s->fault) {
	case FAULT_RKEY:
		work->rkey ^= 0x5500;
		break;
	case FAULT_RANGE:
		work->remote_addr = s->remote_base + s->to->node->size - j->length + 1;
		break;
	case FAULT_LKEY:
		sge[0].lkey ^= 0x10000;
		break;
	case FAULT_ALIGNMENT:
		work->remote_addr += 4;
		break;
	case FAULT_OPCODE:
		work->opcode = WORK_TSO;
		break;
	case FAULT_OWNER:
		node_fail(s->from, REASON_CLIENT_GONE, now);
		break;
	default:
		break;
	}
}

/* A request that the fault can affect. */
static void shape_fault(struct stream *s, struct job *j)
{
	static const uint8_t opcode[FAULTS] = {
		[FAULT_RKEY] = WORK_RDMA_WRITE, [FAULT_RANGE] = WORK_RDMA_READ,
		[FAULT_LKEY] = WORK_SEND,	[FAULT_ALIGNMENT] = WORK_ATOMIC_CMP_AND_SWP,
		[FAULT_TOO_LONG] = WORK_SEND,	[FAULT_OPCODE] = WORK_SEND,
		[FAULT_OWNER] = WORK_SEND
	};

	j->opcode = opcode[s->fault];
	j->length = s->fault == FAULT_TOO_LONG	  ? s->w->max_message + 1
		    : s->fault == FAULT_ALIGNMENT ? 8
						  : MAX_OF(j->length, 1u);
}

static void post_one(struct stream *s, nanotime now)
{
	struct workload *w = s->w;
	struct prng *r = &w->prng;
	struct job *j = &s->job[s->posted % STREAM_JOBS];
	struct work_sge sge[LIMIT_SGE];
	struct send_work work = { .wr_id = (uint64_t)s->pair << 40 | s->posted };
	const void *tail = sge;
	bool faulty = s->fault != FAULT_NONE && s->posted == s->fault_at;

	*j = (struct job){ .number = s->posted,
			   .pattern = prng_next(r),
			   .opcode = choose_opcode(w, s->srq != NULL) };
	j->length = is_atomic(j->opcode) || j->opcode == WORK_ATOMIC_WRITE ? 8
		    : is_bare(j->opcode)				   ? 0
									   : choose_length(w);
	if (faulty)
		shape_fault(s, j);
	extent_cut(&s->w->prng, &j->local,
		   s->local_slots + j->number % STREAM_JOBS * w->slot_octets, j->length,
		   is_atomic(j->opcode) ? 1 : s->from->caps.max_send_sge);
	if (j->local.pieces == 1 && j->length == 0)
		j->local.pieces = prng_below(r, 2);
	pattern_make(w->scratch, j->length, j->pattern);
	prepare_remote(s, j, &work);
	prepare_window(s, j);
	if (s->srq != NULL)
		send_work_set_srqn(&work, s->srq->srqn);
	work.opcode = j->opcode;
	work.imm = immediate_of(j);
	if (j->opcode != WORK_RDMA_READ && !is_atomic(j->opcode))
		extent_fill(s->from, &j->local, w->scratch);

	j->signaled = s->posted + 1 == s->messages || s->silent >= s->from->caps.max_send_wr / 2 ||
		      s->silent >= STREAM_JOBS / 4 || prng_chance(r, 0.7);
	s->silent = j->signaled ? 0 : s->silent + 1;
	work.flags = (uint8_t)((j->signaled ? WORK_SIGNALED : 0) |
			       (prng_chance(r, 0.1) ? WORK_FENCE : 0) |
			       (prng_chance(r, 0.1) ? WORK_SOLICITED : 0));
	if (!faulty && j->opcode != WORK_RDMA_READ && !is_atomic(j->opcode) &&
	    !is_bare(j->opcode) && j->length <= s->from->caps.max_inline && prng_chance(r, 0.3)) {
		work.flags |= WORK_INLINE;
		work.inline_length = j->length;
		tail = w->scratch;
	} else {
		work.num_sge =
			(uint8_t)extent_elements(&j->local, s->local_base, s->local_key, sge);
	}
	if (consumes(j->opcode))
		s->consumer[s->consumers++ % STREAM_JOBS] = s->posted;
	s->posted++;
	if (faulty)
		make_fault(s, j, &work, sge, now);
	if (!node_post_send(s->from, &work, tail, now))
		wrong(w, "the send window was open and then full");
}

static bool may_post(const struct stream *s)
{
	return s->posted < s->messages && s->posted - s->completed < STREAM_JOBS &&
	       qp_state(s->from->core) == QP_STATE_RTS && qp_window_slot(s->from->core) != NULL;
}

void stream_post(struct stream *s, nanotime now)
{
	uint32_t burst = s->w->config->bench ? STREAM_JOBS : prng_between(&s->w->prng, 1, 8);

	for (; burst > 0 && may_post(s); burst--)
		post_one(s, now);
}

void stream_post_receives(struct stream *s, bool lazy)
{
	uint32_t burst = lazy ? prng_below(&s->w->prng, 3) : STREAM_RECEIVES;

	for (; burst > 0 && s->receives_posted - s->receives_done < STREAM_RECEIVES &&
	       qp_state(s->to->core) != QP_STATE_ERR;
	     burst--) {
		struct receive *v = &s->receive[s->receives_posted % STREAM_RECEIVES];
		struct work_sge sge[LIMIT_SGE];

		v->wr_id = (uint64_t)s->pair << 40 | 0x8000000000u | s->receives_posted;
		extent_cut(&s->w->prng, &v->into,
			   s->receive_slots +
				   s->receives_posted % STREAM_RECEIVES * s->w->slot_octets,
			   s->w->max_message, s->to->caps.max_recv_sge);
		extent_elements(&v->into, s->remote_base, s->remote_key, sge);
		s->receives_posted++;
		if (s->srq != NULL)
			node_srq_post(s->srq, v->wr_id, sge, v->into.pieces);
		else
			node_post_receive(s->to, v->wr_id, sge, v->into.pieces);
	}
}

/* Completions. */

static const char *who(const struct stream *s)
{
	static char text[64];

	snprintf(text, sizeof(text), "node %s pair %u request", s->from->node->name, s->pair);
	return text;
}

static void check_atomic(struct stream *s, const struct job *j)
{
	uint64_t value, now_there;

	if (j->counter)
		return;
	memcpy(&value, memory_of(s->from, j->local.at + j->local.offset[0]), sizeof(value));
	memcpy(&now_there, memory_of(s->to, j->remote.at + GUARD_OCTETS), sizeof(now_there));
	if (value != j->before)
		wrong(s->w, "%s %u: the atomic did not return the old value", who(s), j->number);
	if (now_there != j->after)
		wrong(s->w, "%s %u: the atomic's word has a wrong value", who(s), j->number);
}

/* A request that succeeded: everything must be in its place, and nothing elsewhere. */
static void check_success(struct stream *s, const struct job *j)
{
	struct workload *w = s->w;

	if (consumes(j->opcode) && !j->arrived)
		wrong(w, "%s %u: completed before its receive request", who(s), j->number);
	if (is_atomic(j->opcode)) {
		check_atomic(s, j);
	} else if (uses_remote(j->opcode)) {
		pattern_make(w->scratch, j->length, j->pattern);
		if (!extent_equals(s->to, &j->remote, w->scratch, j->length))
			wrong(w, "%s %u: %u octets are not at the target", who(s), j->number,
			      j->length);
		if (!extent_equals(s->from, &j->local, w->scratch, j->length) &&
		    j->opcode == WORK_RDMA_READ)
			wrong(w, "%s %u: %u octets were not read", who(s), j->number, j->length);
	}
	release(s, s->from, &j->local, "local octets");
	if (j->remote.pieces > 0)
		release(s, s->to, &j->remote, "remote octets");
	check_window(s, j, "it completed");
	if (j->key != 0)
		key_free(&window_owner(s, j)->node->keys, j->key);
	w->result->messages++;
	w->result->octets += j->length;
}

/*
 * A READ response that is overtaken by the next one, or by the NAK of the fault, counts as lost
 * (IBTA 9.7.5.1.2): the READ and all requests behind it are sent again. But the sender of the NAK
 * is in ERR and does not answer (9.9.3).
 */
static bool overtaken(const struct stream *s, const struct job *j)
{
	return s->w->config->reorder > 0 && j->number <= s->fault_at &&
	       qp_state(s->to->core) == QP_STATE_ERR;
}

static bool error_expected(const struct stream *s, const struct job *j, uint32_t status)
{
	static const uint8_t of_fault[FAULTS] = { [FAULT_RKEY] = STATUS_REM_ACCESS_ERR,
						  [FAULT_RANGE] = STATUS_REM_ACCESS_ERR,
						  [FAULT_LKEY] = STATUS_LOC_PROT_ERR,
						  [FAULT_ALIGNMENT] = STATUS_REM_INV_REQ_ERR,
						  [FAULT_TOO_LONG] = STATUS_REM_INV_REQ_ERR,
						  [FAULT_OPCODE] = STATUS_LOC_QP_OP_ERR,
						  [FAULT_OWNER] = STATUS_WR_FLUSH_ERR };

	if (s->anything_may_fail ||
	    (s->w->hopeless && (status == STATUS_RETRY_EXC_ERR || status == STATUS_WR_FLUSH_ERR)))
		return true;
	if (!s->may_fail)
		return false;
	/* The peer is gone, or its NAK was lost and it no longer answers. */
	if (status == STATUS_RETRY_EXC_ERR)
		return s->back->fault != FAULT_NONE || s->w->lossy || overtaken(s, j);
	/* An error of the sender's queue pair as responder took it to ERR. */
	if (s->fault == FAULT_NONE)
		return status == STATUS_WR_FLUSH_ERR;
	if (s->fault == FAULT_OWNER)
		return status == STATUS_WR_FLUSH_ERR;
	return j->number == s->fault_at && status == of_fault[s->fault];
}

static void sent_error(struct stream *s, const struct completion *c, const struct job *j)
{
	if (s->failed) {
		if (c->status != STATUS_WR_FLUSH_ERR)
			wrong(s->w, "%s %u: status %u after a failure", who(s), j->number,
			      c->status);
		return;
	}
	s->failed = true;
	s->w->result->broken++;
	if (!error_expected(s, j, c->status))
		wrong(s->w, "%s %u (opcode %u, %u octets): status %u (%s), fault %d", who(s),
		      j->number, j->opcode, j->length, c->status, reason_name(c->vendor_err),
		      s->fault);
}

void stream_sent(struct stream *s, const struct completion *c, nanotime now)
{
	uint32_t number = (uint32_t)c->wr_id;

	s->w->last_progress = now;
	if (number - s->completed >= s->posted - s->completed) {
		wrong(s->w, "%s %u: completed twice, or never posted", who(s), number);
		return;
	}
	for (; s->completed != number; s->completed++) {
		const struct job *j = &s->job[s->completed % STREAM_JOBS];

		if (j->signaled || s->failed)
			wrong(s->w, "%s %u: %u completed, but not this one", who(s), j->number,
			      number);
		check_success(s, j);
	}
	s->completed++;
	if (c->status != STATUS_SUCCESS) {
		sent_error(s, c, &s->job[number % STREAM_JOBS]);
		return;
	}
	if (s->failed || !s->job[number % STREAM_JOBS].signaled)
		wrong(s->w, "%s %u: an unexpected success", who(s), number);
	check_success(s, &s->job[number % STREAM_JOBS]);
}

static void received_error(struct stream *s, const struct completion *c)
{
	if (c->status != STATUS_WR_FLUSH_ERR && ++s->receive_failures > 1)
		wrong(s->w, "pair %u: two receive requests fail, status %u", s->pair, c->status);
	if (!s->may_fail && !s->anything_may_fail && !s->w->hopeless)
		wrong(s->w, "pair %u: a receive request completes with status %u (%s)", s->pair,
		      c->status, reason_name(c->vendor_err));
	if (c->status != STATUS_WR_FLUSH_ERR && !s->anything_may_fail &&
	    !(s->fault == FAULT_TOO_LONG && c->status == STATUS_LOC_LEN_ERR))
		wrong(s->w, "pair %u: receive status %u with fault %d", s->pair, c->status,
		      s->fault);
}

void stream_received(struct stream *s, const struct completion *c)
{
	struct workload *w = s->w;
	struct receive *v = &s->receive[s->receives_done % STREAM_RECEIVES];
	struct job *j;
	bool by_write;

	if (s->receives_done == s->receives_posted || v->wr_id != c->wr_id) {
		wrong(w, "pair %u: receive %llx completes out of order", s->pair,
		      (unsigned long long)c->wr_id);
		return;
	}
	s->receives_done++;
	if (c->status != STATUS_SUCCESS) {
		received_error(s, c);
		return;
	}
	if (s->consumed == s->consumers) {
		wrong(w, "pair %u: a message arrives that was not sent", s->pair);
		return;
	}
	j = &s->job[s->consumer[s->consumed++ % STREAM_JOBS] % STREAM_JOBS];
	by_write = j->opcode == WORK_RDMA_WRITE_WITH_IMM;
	j->arrived = true;
	if (c->byte_len != j->length ||
	    c->opcode != (by_write ? COMPLETION_RECV_RDMA_WITH_IMM : COMPLETION_RECV))
		wrong(w, "%s %u: %u octets arrive as %u", who(s), j->number, j->length,
		      c->byte_len);
	if (j->opcode != WORK_SEND && c->imm != immediate_of(j))
		wrong(w, "%s %u: wrong immediate data", who(s), j->number);
	if (((c->wc_flags & COMPLETION_WITH_INV) != 0) != (j->key != 0))
		wrong(w, "%s %u: wrong flags %x", who(s), j->number, c->wc_flags);
	if (c->from_srq != (s->srq != NULL) || (s->srq != NULL && c->work_index != s->srq->number))
		wrong(w, "%s %u: not of its SRQ", who(s), j->number);
	check_window(s, j, "it arrived");
	pattern_make(w->scratch, j->length, j->pattern);
	if (!extent_equals(s->to, by_write ? &j->remote : &v->into, w->scratch, j->length))
		wrong(w, "%s %u: %u octets differ from those sent", who(s), j->number, j->length);
	if (!by_write && j->length < w->max_message) {
		/* nothing was written after the message */
		memset(w->scratch, GUARD, w->max_message);
		pattern_make(w->scratch, j->length, j->pattern);
		if (!extent_equals(s->to, &v->into, w->scratch, w->max_message))
			wrong(w, "%s %u: octets after the message were written", who(s), j->number);
	}
	release(s, s->to, &v->into, "receive octets");
}

bool stream_done(const struct stream *s)
{
	bool failed = qp_state(s->from->core) == QP_STATE_ERR;

	if (!failed && s->posted < s->messages)
		return false;
	return s->posted == s->completed || (failed && qp_retired(s->from->core) == s->posted);
}

void stream_end(struct stream *s)
{
	const struct extent *e;

	if (qp_state(s->from->core) != QP_STATE_ERR && s->completed != s->posted)
		wrong(s->w, "%s: %u of %u completed", who(s), s->completed, s->posted);
	if (qp_state(s->to->core) == QP_STATE_ERR && s->receives_done != s->receives_posted &&
	    s->srq == NULL) /* an SRQ keeps requests that were not taken */
		wrong(s->w, "pair %u: %u receive requests were not flushed", s->pair,
		      s->receives_posted - s->receives_done);
	if (s->consumed != s->consumers && qp_state(s->from->core) != QP_STATE_ERR)
		wrong(s->w, "pair %u: %u messages did not arrive", s->pair,
		      s->consumers - s->consumed);
	/* A failed request may have written a part of its octets, but only in its own place. */
	for (uint32_t i = 0; i < STREAM_JOBS && i < s->posted; i++) {
		e = &s->job[i].local;
		if (s->may_fail || s->anything_may_fail || s->w->hopeless) {
			release(s, s->from, e, "local octets");
			if (s->job[i].remote.pieces > 0)
				release(s, s->to, &s->job[i].remote, "remote octets");
		}
	}
	for (uint32_t i = 0; i < STREAM_RECEIVES && i < s->receives_posted; i++)
		release(s, s->to, &s->receive[i].into, "receive octets");
}
