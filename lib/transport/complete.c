/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions of both queues, in order: exactly one for each request, except unsignalled ones that
 * succeed. A completion waits for the copies that it vouches for.
 */
#include <assert.h>

#include "base/bits.h"
#include "transport/events.h"
#include "transport/requester/kind.h"
#include "transport/qp.h"

static uint32_t wc_flags_of(const struct qp *qp, const struct receive_done *d)
{
	return (d->flags & RECEIVE_IMM ? COMPLETION_WITH_IMM : 0u) |
	       (d->flags & RECEIVE_INV ? COMPLETION_WITH_INV : 0u) |
	       (d->flags & RECEIVE_CHECKSUM_OK ? COMPLETION_IP_CSUM_OK : 0u) |
	       (qp->type == QP_TYPE_UD ? COMPLETION_GRH : 0u);
}

/*
 * IBTA A17.4.5.1: a completion of UD says whether the frame was IPv4 or IPv6. It stands in the
 * service level, which RoCE does not have: ConnectX puts it there, and UCX expects it.
 */
static uint8_t sl_of(const struct qp *qp, const struct receive_done *d)
{
	if (qp->type != QP_TYPE_UD || d->status != STATUS_SUCCESS)
		return 0;
	return COMPLETION_SL_UDP |
	       (d->flags & RECEIVE_IPV4 ? COMPLETION_SL_IPV4 : COMPLETION_SL_IPV6);
}

/* Nearly all receives are of RC, succeed, come from their own queue, and carry only octets. */
static inline bool is_plain(const struct qp *qp, const struct receive_done *d)
{
	return qp->type == QP_TYPE_RC && d->status == STATUS_SUCCESS && d->flags == 0 &&
	       d->srq == 0 && d->mark == 0;
}

static inline void plain_completion(const struct qp *qp, const struct receive_done *d,
				    struct completion *c)
{
	*c = (struct completion){
		.wr_id = d->wr_id,
		.status = STATUS_SUCCESS,
		.opcode = COMPLETION_RECV,
		.byte_len = d->byte_len,
		.qp_num = qp->qpn,
		.src_qp = qp->dest_qpn,
		.qp_handle = qp->caps.handle,
		.work_index = qp->receives.taken,
	};
}

static __attribute__((noinline)) void completion_of_receive(const struct qp *qp,
							    const struct receive_done *d,
							    struct completion *c)
{
	*c = (struct completion){
		.wr_id = d->wr_id,
		.status = d->status,
		.opcode = d->flags & RECEIVE_BY_WRITE ? COMPLETION_RECV_RDMA_WITH_IMM
						      : COMPLETION_RECV,
		.vendor_err = d->reason,
		.byte_len = d->byte_len,
		.imm = d->flags & (RECEIVE_IMM | RECEIVE_INV) ? d->imm : 0,
		.qp_num = qp->qpn,
		.src_qp = qp_type_datagram(qp->type) ? d->src_qpn : qp->dest_qpn,
		.wc_flags = wc_flags_of(qp, d),
		.slid = qp->type == QP_TYPE_RAW_PACKET ? (uint16_t)d->imm : 0,
		.sl = sl_of(qp, d),
		.from_srq = d->srq != 0,
		.solicited = (d->flags & RECEIVE_SOLICITED) || d->status != STATUS_SUCCESS,
		.qp_handle = qp->caps.handle,
		.work_index = d->mark != 0  ? d->mark
			      : d->srq != 0 ? d->srq
					    : qp->receives.taken,
	};
}

static inline bool take_receive(struct qp *qp, struct completion *c)
{
	const struct receive_done *d = receive_at(&qp->receives, qp->receives.taken);

	if (!receives_waiting(&qp->receives) || !ticket_settled(&qp->tickets, d->ticket))
		return false;
	assert((d->status == STATUS_SUCCESS) == (d->reason == REASON_NONE) && "an error says why");
	if (is_plain(qp, d))
		plain_completion(qp, d, c);
	else
		completion_of_receive(qp, d, c);
	qp->receives.taken++;
	return true;
}

static uint32_t completion_opcode(const struct send_work *w, uint8_t kind)
{
	static const uint8_t opcode[] = {
		[KIND_SEND] = COMPLETION_SEND,
		[KIND_WRITE] = COMPLETION_RDMA_WRITE,
		[KIND_READ_REQUEST] = COMPLETION_RDMA_READ,
		[KIND_CMP_SWAP] = COMPLETION_COMP_SWAP,
		[KIND_FETCH_ADD] = COMPLETION_FETCH_ADD,
		[KIND_FLUSH] = COMPLETION_FLUSH,
		[KIND_ATOMIC_WRITE] = COMPLETION_ATOMIC_WRITE,
		[KIND_BIND_MW] = COMPLETION_BIND_MW,
		[KIND_LOCAL_INV] = COMPLETION_LOCAL_INV,
	};

	if (w->opcode == WORK_TSO)
		return COMPLETION_TSO;
	return kind < ARRAY_SIZE(opcode) ? opcode[kind] : COMPLETION_SEND;
}

/* Whether the oldest request asked for a completion. */
static bool is_signaled(const struct qp *qp)
{
	return qp->sig_all || (request_at(&qp->req, qp->req.retired)->flags & WORK_SIGNALED);
}

static void completion_of_request(const struct qp *qp, enum work_status status, uint32_t reason,
				  struct completion *c)
{
	uint32_t index = qp->req.retired;
	const struct message *m = message_at(&qp->req, index);

	*c = (struct completion){
		.wr_id = request_at(&qp->req, index)->wr_id,
		.status = status,
		.opcode = completion_opcode(request_at(&qp->req, index), m->kind),
		.vendor_err = reason,
		.byte_len = m->length,
		.qp_num = qp->qpn,
		.solicited = status != STATUS_SUCCESS,
		.qp_handle = qp->caps.handle,
		.from_srq = m->own	      ? COMPLETION_OWN
			    : is_signaled(qp) ? 0
					      : COMPLETION_UNSIGNALED,
		.work_index = retired_of_program(&qp->req),
	};
}

static inline void retire(struct requester *r)
{
	assert(r->retired != r->tail && "there is a request to retire");
	r->own_retired += message_at(r, r->retired)->own;
	r->retired++;
}

/* A request that is done and whose fetched data, if any, is in memory. */
static bool done_request(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	const struct message *m = message_at(r, r->retired);

	return r->retired != r->una &&
	       (!kind_is_fetching(m->kind) || ticket_settled(&qp->tickets, m->ticket));
}

bool qp_has_done(const struct qp *qp)
{
	return done_request(qp);
}

static bool take_done(struct qp *qp, struct completion *c)
{
	struct requester *r = &qp->req;

	while (done_request(qp)) { /* at most the window */
		bool signaled = is_signaled(qp);

		if (signaled)
			completion_of_request(qp, STATUS_SUCCESS, REASON_NONE, c);
		retire(r);
		if (signaled)
			return true;
	}
	return false;
}

/* In ERR and SQE: the failed request, then the rest as flushed (IBTA 10.3.1.6, 10.3.1.7). */
static bool take_flushed(struct qp *qp, struct completion *c)
{
	struct requester *r = &qp->req;

	if ((qp->state != QP_STATE_ERR && qp->state != QP_STATE_SQE) || r->retired != r->una ||
	    r->una == r->tail)
		return false;
	if (r->failed)
		completion_of_request(qp, r->failed_status, r->failed_reason, c);
	else
		completion_of_request(qp, STATUS_WR_FLUSH_ERR, r->flush_reason, c);
	r->failed = false;
	retire(r);
	assert(r->own_posted - r->own_retired <= r->tail - r->retired &&
	       "the caller's are among them");
	r->una = r->nxt = r->retired;
	if ((int32_t)(r->una - r->begun) > 0)
		r->begun = r->una;
	return true;
}

static __attribute__((noinline)) bool take_request(struct qp *qp, struct completion *c)
{
	return take_done(qp, c) || take_flushed(qp, c);
}

bool qp_take_completion(struct qp *qp, struct completion *c, bool *from_receive)
{
	*from_receive = take_receive(qp, c);
	return *from_receive || take_request(qp, c);
}

void qp_flush_receive(const struct qp *qp, const struct recv_work *work, struct completion *c)
{
	*c = (struct completion){
		.wr_id = work->wr_id,
		.status = STATUS_WR_FLUSH_ERR,
		.opcode = COMPLETION_RECV,
		.vendor_err = REASON_FLUSHED,
		.qp_num = qp->qpn,
		.solicited = 1,
		.qp_handle = qp->caps.handle,
	};
}
