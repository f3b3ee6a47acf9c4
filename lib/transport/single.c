/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What UD and RAW_PACKET have in common: a message is one packet. A message that does not fit, or
 * finds no receive request, is lost silently. The queue pair goes to ERR only if a receive request
 * names memory that may not be written.
 */
#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/requester/kind.h"
#include "transport/qp.h"
#include "transport/responder/respond_check.h"
#include "transport/requester/segment.h"
#include "transport/single.h"
#include "transport/responder/verdict.h"

#define ETHERNET_HEADER 14u

/* The largest and the smallest packet. */
struct bounds {
	uint32_t least;
	uint32_t most;
};

enum work_status single_check(const struct qp *qp, const struct send_work *w, uint64_t length)
{
	bool frame = qp->type == QP_TYPE_RAW_PACKET, tso = w->opcode == WORK_TSO;
	struct bounds packet = { frame ? ETHERNET_HEADER : 0,
				 frame ? qp->caps.max_frame : qp->mtu };
	bool fits = length >= packet.least && length <= packet.most;

	if (tso && segment_malformed(qp, w, MAX_OF(packet.least, 1u)))
		return STATUS_LOC_QP_OP_ERR;
	if (tso)
		fits = length <= LIMIT_TSO && (uint32_t)w->mss + w->tso_header <= packet.most;
	return fits ? STATUS_SUCCESS : STATUS_LOC_LEN_ERR;
}

static void receive_done(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			 uint32_t octets)
{
	bool frame = qp->type == QP_TYPE_RAW_PACKET;
	bool imm = !frame && opcode_is(p->opcode, OP_IMM);
	struct receive_done d = {
		.wr_id = offer->wr_id,
		.srq = qp->srq,
		.ticket = (uint32_t)qp->tickets.issued,
		.byte_len = octets,
		.imm = frame ? p->vlan_tci
		       : imm ? p->imm
			     : 0,
		.src_qpn = frame ? p->flow_tag : p->src_qpn,
		.flags = (uint8_t)((imm ? RECEIVE_IMM : 0) |
				   (!frame && p->solicited ? RECEIVE_SOLICITED : 0) |
				   (p->checksum ? RECEIVE_CHECKSUM_OK : 0) |
				   (!frame && gid_is_ipv4(&p->dst_gid) ? RECEIVE_IPV4 : 0)),
	};

	receive_push(&qp->receives, &d);
}

/* The receive request names memory that may not be written: a local error of the receive queue. */
static void receive_failed(struct qp *qp, const struct recv_work *offer, enum reason why)
{
	struct receive_done d = { .wr_id = offer->wr_id,
				  .srq = qp->srq,
				  .ticket = (uint32_t)qp->tickets.issued,
				  .status = verdict_of_unreliable(why)->receive_status,
				  .reason = (uint8_t)why };

	assert(verdict_of_unreliable(why)->fatal && "only the program's own fault ends it");
	receive_push(&qp->receives, &d);
	enter_error(qp);
}

enum reason single_received(struct qp *qp, const struct packet *p, const uint8_t *octets,
			    uint32_t length, const struct recv_work *offer,
			    const struct key_table *keys, struct outcome *out)
{
	enum reason why = check_offer(qp, offer);

	if (why == REASON_NONE && length > receive_length(offer))
		return REASON_LENGTH_RECEIVE;
	if (why == REASON_NONE &&
	    key_spans_of_list(keys, recv_work_sge(offer), offer->num_sge, qp->receiver,
			      ACCESS_LOCAL_WRITE, 0, length, &out->place) != REASON_NONE)
		why = REASON_RECEIVE_MEMORY;
	if (why == REASON_RECEIVE_NOT_READY)
		return why;
	out->flags = OUTCOME_RECEIVE_USED;
	if (why != REASON_NONE) {
		span_list_clear(&out->place);
		receive_failed(qp, offer, why);
		return why;
	}
	assert(out->place.length == length && "all of it has a place");
	if (length > 0) {
		out->flags |= OUTCOME_PLACE;
		out->source = octets;
		out->ticket = ticket_issue(&qp->tickets, TICKET_RECEIVE, p->psn, qp->resp.msn, 0);
	}
	receive_done(qp, p, offer, length);
	return REASON_NONE;
}
