/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks that a request passes, in the specification's order (IBTA 9.7.4.1, 9.7.5):
 *
 *	PSN -> opcode sequence -> operation allowed -> resources -> length -> key and range
 *
 * No check changes the queue pair. The arrival and its outcome hold what the effects need: where
 * the octets go, which record a repetition belongs to.
 */
#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/responder/duplicate.h"
#include "transport/requester/kind.h"
#include "transport/responder/respond_check.h"

static enum reason check_psn(struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	int32_t ahead = psn_distance(a->p->psn, r->expected_psn);

	assert(ahead <= 0 && "respond_received looks at no other");
	if (ahead == 0)
		return REASON_NONE;
	return kind_is_fetching(a->op->kind) ? duplicate_check(a) : REASON_DUPLICATE;
}

/*
 * Only a continuation is valid inside a message, only a beginning outside (IBTA 9.7.4.1.2). The
 * whole message is for the SRQ that it began with.
 */
static enum reason check_sequence(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	bool begins = a->op->flags & OP_FIRST;

	if (r->open == KIND_UNDEFINED)
		return begins ? REASON_NONE : REASON_OPCODE_SEQUENCE;
	return !begins && a->op->kind == r->open && a->qp->srq == r->srq ? REASON_NONE
									 : REASON_OPCODE_SEQUENCE;
}

/* The rights that the placement types of a FETH need; reserved types need none and are refused. */
static uint32_t flush_access(uint32_t feth)
{
	return (feth & FLUSH_GLOBAL ? ACCESS_FLUSH_GLOBAL : 0) |
	       (feth & FLUSH_PERSISTENT ? ACCESS_FLUSH_PERSISTENT : 0);
}

static bool flush_defined(uint32_t feth)
{
	uint32_t type = FETH_TYPE(feth);

	return type != 0 && (type & ~(FLUSH_GLOBAL | FLUSH_PERSISTENT)) == 0 &&
	       FETH_LEVEL(feth) <= FLUSH_REGION;
}

enum reason respond_check_access(const struct arrival *a)
{
	static const struct {
		bool supported;
		uint32_t needs; /* enum access_flag of the queue pair */
	} operation[] = {
		[KIND_SEND] = { true, 0 },
		[KIND_WRITE] = { true, ACCESS_REMOTE_WRITE },
		[KIND_READ_REQUEST] = { true, ACCESS_REMOTE_READ },
		[KIND_CMP_SWAP] = { true, ACCESS_REMOTE_ATOMIC },
		[KIND_FETCH_ADD] = { true, ACCESS_REMOTE_ATOMIC },
		[KIND_FLUSH] = { true, 0 }, /* and what its type needs */
		[KIND_ATOMIC_WRITE] = { true, ACCESS_REMOTE_WRITE },
	};
	uint8_t kind = a->op->kind;
	uint32_t needs;

	if (kind >= ARRAY_SIZE(operation) || !operation[kind].supported)
		return REASON_OPCODE_UNSUPPORTED;
	needs = operation[kind].needs | (kind == KIND_FLUSH ? flush_access(a->p->feth) : 0);
	return (needs & ~a->qp->resp.access) == 0 ? REASON_NONE : REASON_ACCESS_FLAGS;
}

/* XRC: receive requests, protection domain and rights come from an SRQ (protocol-map 170). */
static enum reason check_target(const struct arrival *a)
{
	return (a->op->flags & OP_XRCETH) && a->qp->srq == 0 ? REASON_SRQ_UNKNOWN : REASON_NONE;
}

static enum reason check_resources(const struct arrival *a)
{
	if (kind_is_fetching(a->op->kind) && !record_free(&a->qp->resp))
		return REASON_RD_ATOMIC_LIMIT;
	if (!(a->op->flags & OP_CONSUMES))
		return REASON_NONE;
	return check_offer(a->qp, a->offer);
}

uint64_t receive_length(const struct recv_work *w)
{
	const struct work_sge *sge = recv_work_sge(w);
	uint64_t length = 0;

	assert(w->num_sge <= LIMIT_SGE && "check_offer comes first");
	for (uint32_t i = 0; i < w->num_sge; i++)
		length += sge[i].length;
	return MIN_OF(length, LIMIT_MESSAGE);
}

static enum reason check_payload(const struct arrival *a)
{
	uint32_t n = a->p->payload_length, mtu = a->qp->mtu;

	if (a->p->pad != (-n & 3))
		return REASON_LENGTH_PAYLOAD;
	if (!(a->op->flags & OP_PAYLOAD))
		return n == 0 ? REASON_NONE : REASON_LENGTH_PAYLOAD;
	if (!(a->op->flags & OP_LAST)) /* FIRST and MIDDLE are full */
		return n == mtu ? REASON_NONE : REASON_LENGTH_PAYLOAD;
	if (n == 0 && !(a->op->flags & OP_FIRST)) /* a LAST brings something */
		return REASON_LENGTH_PAYLOAD;
	return n <= mtu ? REASON_NONE : REASON_LENGTH_PAYLOAD;
}

/* WRITE: the payloads' sum is the RETH's length, no more and no less (IBTA 9.7.4.1.6). */
static enum reason check_write_length(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	uint32_t n = a->p->payload_length;
	uint32_t rest = a->op->flags & OP_FIRST ? a->p->dma_length : r->length - r->offset;
	bool fits = a->op->flags & OP_LAST ? n == rest : n < rest;

	assert((a->op->flags & OP_FIRST || r->offset <= r->length) && "as the packets before it");
	return fits ? REASON_NONE : REASON_LENGTH_RETH;
}

static enum reason check_send_length(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	uint64_t n = stored_length(a);

	if (a->op->flags & OP_FIRST)
		return n <= receive_length(a->offer) ? REASON_NONE : REASON_LENGTH_RECEIVE;
	assert(r->offset <= r->length && "as the packets before it");
	return n <= r->length - r->offset ? REASON_NONE : REASON_LENGTH_RECEIVE;
}

enum reason respond_check_length(const struct arrival *a)
{
	enum reason why = check_payload(a);

	if (why != REASON_NONE)
		return why;
	if ((a->op->flags & OP_RETH) && a->p->dma_length > LIMIT_MESSAGE)
		return REASON_LENGTH_MESSAGE;
	if (a->op->kind == KIND_ATOMIC_WRITE &&
	    (a->p->dma_length != 8 || a->p->payload_length != 8))
		return REASON_LENGTH_RETH;
	if (((a->op->flags & OP_ATOMIC_ETH) || a->op->kind == KIND_ATOMIC_WRITE) &&
	    (a->p->va & 7) != 0)
		return REASON_ATOMIC_ALIGNMENT;
	if (a->op->kind == KIND_FLUSH && !flush_defined(a->p->feth))
		return REASON_FLUSH_TYPE;
	if (a->op->kind == KIND_WRITE)
		return check_write_length(a);
	return a->op->kind == KIND_SEND ? check_send_length(a) : REASON_NONE;
}

/* Checks the whole range at the first packet, and the touched part at every packet (protocol-map
 * 151, 152).
 */
static enum reason check_write_key(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	const struct packet *p = a->p;
	const struct region *region;
	enum reason why;

	if (p->payload_length == 0) /* without octets no key is checked (C9-88) */
		return REASON_NONE;
	if (!(a->op->flags & OP_FIRST))
		return key_spans(a->keys, r->rkey, a->qp->user, ACCESS_REMOTE_WRITE,
				 r->va + r->offset, p->payload_length, &a->out->place);
	if (p->dma_length > p->payload_length) {
		why = key_check(a->keys, p->rkey, a->qp->user, ACCESS_REMOTE_WRITE, p->va,
				p->dma_length, &region);
		if (why != REASON_NONE)
			return why;
	}
	return key_spans(a->keys, p->rkey, a->qp->user, ACCESS_REMOTE_WRITE, p->va,
			 p->payload_length, &a->out->place);
}

static enum reason check_send_key(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	bool first = a->op->flags & OP_FIRST;
	const struct recv_work *w = first ? a->offer : r->held;
	enum reason why = key_spans_of_list(a->keys, recv_work_sge(w), w->num_sge, a->qp->receiver,
					    ACCESS_LOCAL_WRITE, first ? 0 : r->offset,
					    stored_length(a), &a->out->place);

	if (why != REASON_NONE)
		return REASON_RECEIVE_MEMORY;
	if ((a->op->flags & OP_IETH) &&
	    key_check_invalidate(a->keys, a->p->invalidate_rkey, a->qp->user) != REASON_NONE)
		return REASON_INVALIDATE_KEY;
	return REASON_NONE;
}

static enum reason check_atomic_key(const struct arrival *a)
{
	struct span_list *place = &a->out->place;
	enum reason why = key_spans(a->keys, a->p->rkey, a->qp->user, ACCESS_REMOTE_ATOMIC,
				    a->p->va, 8, place);

	assert(kind_is_atomic(a->op->kind) && "respond_check_access knows the others");
	if (why != REASON_NONE)
		return why;
	if (place->count != 1) /* eight octets that lie apart are not one memory access */
		return REASON_MEMORY_FAULT;
	a->out->atomic.target = place->span[0];
	span_list_clear(place);
	return REASON_NONE;
}

static enum reason check_read_key(const struct arrival *a)
{
	const struct region *region;

	if (a->p->dma_length == 0)
		return REASON_NONE;
	return key_check(a->keys, a->p->rkey, a->qp->user, ACCESS_REMOTE_READ, a->p->va,
			 a->p->dma_length, &region);
}

/* The caller stores the eight octets at once, so no store may be split. */
static enum reason check_atomic_write_key(const struct arrival *a)
{
	struct span_list *place = &a->out->place;
	enum reason why = key_spans(a->keys, a->p->rkey, a->qp->user, ACCESS_REMOTE_WRITE, a->p->va,
				    8, place);
	uint64_t at;

	if (why != REASON_NONE)
		return why;
	at = place->span[0].direct != NULL ? (uintptr_t)place->span[0].direct
					   : place->span[0].peer_address;
	return place->count == 1 && (at & 7) == 0 ? REASON_NONE : REASON_MEMORY_FAULT;
}

/* The key counts even where no octet is named (IBTA A19). */
static enum reason check_flush_key(const struct arrival *a)
{
	const struct packet *p = a->p;
	const struct region *region = key_find(a->keys, p->rkey);
	bool whole = FETH_LEVEL(p->feth) == FLUSH_REGION;

	if (region == NULL)
		return REASON_KEY_UNKNOWN;
	return key_check(a->keys, p->rkey, a->qp->user, flush_access(p->feth),
			 whole ? region->iova : p->va, whole ? region->length : p->dma_length,
			 &region);
}

enum reason respond_check_key(const struct arrival *a)
{
	switch (a->op->kind) {
	case KIND_WRITE:
		return check_write_key(a);
	case KIND_SEND:
		return check_send_key(a);
	case KIND_READ_REQUEST:
		return check_read_key(a);
	case KIND_ATOMIC_WRITE:
		return check_atomic_write_key(a);
	case KIND_FLUSH:
		return check_flush_key(a);
	default:
		return check_atomic_key(a);
	}
}

enum reason respond_check(struct arrival *a)
{
	enum reason why = check_psn(a);

	if (why == REASON_NONE)
		why = check_sequence(a);
	if (why == REASON_NONE)
		why = respond_check_access(a);
	if (why == REASON_NONE)
		why = check_target(a);
	if (why == REASON_NONE)
		why = check_resources(a);
	if (why == REASON_NONE)
		why = respond_check_length(a);
	if (why == REASON_NONE)
		why = respond_check_key(a);
	return why;
}
