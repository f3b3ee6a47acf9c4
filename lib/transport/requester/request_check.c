/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client may write anything into a request, so everything that is used later is checked here,
 * when it is posted. A request that cannot be sent is marked, and fails in its turn.
 */
#include <assert.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/requester/kind.h"
#include "transport/qp.h"
#include "transport/requester/request_check.h"
#include "transport/single.h"

const struct work_kind work_kinds[16] = {
	[WORK_RDMA_WRITE] = { KIND_WRITE, OPB_WRITE_FIRST, ENDING_PLAIN, OPB_WRITE_ONLY },
	[WORK_RDMA_WRITE_WITH_IMM] = { KIND_WRITE, OPB_WRITE_FIRST, ENDING_IMM,
				       OPB_WRITE_ONLY_IMM },
	[WORK_SEND] = { KIND_SEND, OPB_SEND_FIRST, ENDING_PLAIN, OPB_SEND_ONLY },
	[WORK_SEND_WITH_IMM] = { KIND_SEND, OPB_SEND_FIRST, ENDING_IMM, OPB_SEND_ONLY_IMM },
	[WORK_SEND_WITH_INV] = { KIND_SEND, OPB_SEND_FIRST, ENDING_INV, OPB_SEND_ONLY_INV },
	[WORK_TSO] = { KIND_SEND, OPB_SEND_FIRST, ENDING_PLAIN },
	[WORK_RDMA_READ] = { KIND_READ_REQUEST, OPB_READ_REQUEST, ENDING_PLAIN, OPB_READ_REQUEST },
	[WORK_ATOMIC_CMP_AND_SWP] = { KIND_CMP_SWAP, OPB_CMP_SWAP, ENDING_PLAIN },
	[WORK_ATOMIC_FETCH_AND_ADD] = { KIND_FETCH_ADD, OPB_FETCH_ADD, ENDING_PLAIN },
	[WORK_LOCAL_INV] = { KIND_LOCAL_INV, 0, ENDING_PLAIN },
	[WORK_BIND_MW] = { KIND_BIND_MW, 0, ENDING_PLAIN },
	[WORK_FLUSH] = { KIND_FLUSH, OPB_FLUSH, ENDING_PLAIN },
	[WORK_ATOMIC_WRITE] = { KIND_ATOMIC_WRITE, OPB_ATOMIC_WRITE, ENDING_PLAIN },
};

/* The table of ibv_post_send(3): which types of queue pair carry a work opcode. */
#define ON(type)  (1u << QP_TYPE_##type)
#define CONNECTED (ON(UC) | ON(RC) | ON(XRC_SEND))

static const uint16_t carried_by[] = {
	[WORK_SEND] = ON(UD) | CONNECTED | ON(RAW_PACKET),
	[WORK_SEND_WITH_IMM] = ON(UD) | CONNECTED,
	[WORK_RDMA_WRITE] = CONNECTED,
	[WORK_RDMA_WRITE_WITH_IMM] = CONNECTED,
	[WORK_RDMA_READ] = ON(RC) | ON(XRC_SEND),
	[WORK_ATOMIC_CMP_AND_SWP] = ON(RC) | ON(XRC_SEND),
	[WORK_ATOMIC_FETCH_AND_ADD] = ON(RC) | ON(XRC_SEND),
	[WORK_LOCAL_INV] = CONNECTED,
	[WORK_BIND_MW] = CONNECTED,
	[WORK_SEND_WITH_INV] = CONNECTED,
	[WORK_TSO] = ON(UD) | ON(RAW_PACKET),
	[WORK_FLUSH] = ON(RC),
	[WORK_ATOMIC_WRITE] = ON(RC),
};

static_assert(ARRAY_SIZE(carried_by) >= ARRAY_SIZE(work_kinds), "what is sent is carried");

static uint8_t kind_of(const struct qp *qp, uint8_t opcode)
{
	if (opcode >= ARRAY_SIZE(work_kinds) || !(carried_by[opcode] & 1u << qp->type))
		return KIND_UNDEFINED;
	return work_kinds[opcode].kind;
}

/* Data that travels in the request itself, so that it may be inline. */
static bool kind_sends_data(uint8_t kind)
{
	return kind == KIND_SEND || kind == KIND_WRITE || kind == KIND_ATOMIC_WRITE;
}

/* ATOMIC WRITE brings its octets whatever a queue pair was made for: the smallest slot holds them. */
static uint32_t inline_room(const struct qp *qp, uint8_t kind)
{
	return kind == KIND_ATOMIC_WRITE ? MAX_OF(qp->caps.max_inline, 8u) : qp->caps.max_inline;
}

static uint64_t length_of(const struct send_work *w)
{
	const struct work_sge *sge = send_work_sge(w);
	uint64_t length = 0;

	if (w->flags & WORK_INLINE)
		return w->inline_length;
	if (w->num_sge == 1 && work_kinds[w->opcode].only != 0)
		return sge->length;
	if (w->opcode == WORK_FLUSH || kind_is_local(work_kinds[w->opcode].kind))
		return 0; /* elements mean nothing */
	for (uint32_t i = 0; i < w->num_sge; i++)
		length += sge[i].length;
	return length;
}

/* The fixed lengths of some operations (IBTA 9.4.5, A19). */
static bool length_fits(const struct send_work *w, uint8_t kind, uint64_t length)
{
	if (kind_is_atomic(kind) || kind == KIND_ATOMIC_WRITE)
		return length == 8;
	if (kind == KIND_FLUSH && w->flush_level == FLUSH_RANGE)
		return w->flush_length <= LIMIT_MESSAGE;
	return length <= LIMIT_MESSAGE;
}

static bool flush_defined(const struct send_work *w)
{
	return w->flush_type != 0 && (w->flush_type & ~(FLUSH_GLOBAL | FLUSH_PERSISTENT)) == 0 &&
	       w->flush_level <= FLUSH_REGION;
}

void request_set_fault(struct message *m, enum work_status status, enum reason why)
{
	assert(status != STATUS_SUCCESS && why != REASON_NONE);
	m->fault = (uint8_t)why;
	m->fault_status = (uint8_t)status;
	m->plain = false;
}

void request_check_any(const struct qp *qp, const struct send_work *w, struct message *m)
{
	uint8_t kind = kind_of(qp, w->opcode);
	uint64_t length;

	m->kind = kind;
	m->fault = REASON_NONE;
	m->length = 0;
	m->plain = false;
	if (kind == KIND_UNDEFINED) {
		request_set_fault(m, STATUS_LOC_QP_OP_ERR, REASON_WORK_OPCODE);
		return;
	}
	if (w->flags & WORK_INLINE
		    ? w->inline_length > inline_room(qp, kind) || !kind_sends_data(kind)
		    : w->num_sge > qp->caps.max_send_sge ||
			      (kind == KIND_FLUSH && !flush_defined(w))) {
		request_set_fault(m, STATUS_LOC_QP_OP_ERR, REASON_WORK_MALFORMED);
		return;
	}
	length = length_of(w);
	if (!length_fits(w, kind, length)) {
		request_set_fault(m, STATUS_LOC_LEN_ERR, REASON_WORK_MALFORMED);
		return;
	}
	if (qp_type_datagram(qp->type)) {
		enum work_status status = single_check(qp, w, length);

		if (status != STATUS_SUCCESS) {
			request_set_fault(m, status, REASON_WORK_MALFORMED);
			return;
		}
	}
	assert(length <= LIMIT_MESSAGE && "length_fits and single_check");
	m->length = (uint32_t)length;
	m->plain = work_kinds[w->opcode].only != 0 && !(w->flags & WORK_FENCE) &&
		   !qp_type_unreliable(qp->type);
}
