/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one packet: UD, with a GRH in front and a Q_Key for a ticket (IBTA 9.8.3), and
 * RAW_PACKET, whose packets are whole Ethernet frames. A TSO request of UD is as many messages as it
 * has segments: packets with PSNs of their own, of which the last completes it. A datagram that does not fit, or that finds
 * no receive request, is lost, and nobody is told. Only memory that a receive request names and
 * may not be written takes the queue pair to ERR.
 */
#include "base/bits.h"
#include "transport/datagram.h"
#include "transport/events.h"
#include "transport/kind.h"
#include "transport/respond_check.h"
#include "transport/verdict.h"
#include "wire/decode.h"

#define ETHERNET_HEADER 14u
#define QKEY_OWN	UINT32_C(0x80000000) /* in a request: the queue pair's own is meant */

/* Sending. */

/* What one packet can be, and what it must be at least. */
struct bounds {
	uint32_t least;
	uint32_t most;
};

static bool tso_malformed(const struct qp *qp, const struct send_work *w, uint32_t least)
{
	uint32_t room = qp->req.stride - (uint32_t)sizeof(*w);

	return (w->flags & WORK_INLINE) || w->mss == 0 || w->tso_header < least ||
	       w->tso_header > LIMIT_TSO_HEADER ||
	       w->num_sge * sizeof(struct work_sge) + w->tso_header > room;
}

enum work_status datagram_check(const struct qp *qp, const struct send_work *w, uint64_t length)
{
	bool frame = qp->type == QP_TYPE_RAW_PACKET, tso = w->opcode == WORK_TSO;
	struct bounds packet = { frame ? ETHERNET_HEADER : 0,
				 frame ? qp->caps.max_frame : qp->mtu };
	bool fits = length >= packet.least && length <= packet.most;

	if (tso && tso_malformed(qp, w, MAX_OF(packet.least, 1u)))
		return STATUS_LOC_QP_OP_ERR;
	if (tso)
		fits = length <= LIMIT_TSO && (uint32_t)w->mss + w->tso_header <= packet.most;
	return fits ? STATUS_SUCCESS : STATUS_LOC_LEN_ERR;
}

uint32_t datagram_packets(const struct qp *qp, const struct send_work *w, const struct message *m)
{
	if (qp->type != QP_TYPE_UD || w->opcode != WORK_TSO || m->length == 0)
		return 1;
	return (m->length + w->mss - 1) / w->mss;
}

void datagram_address(const struct qp *qp, const struct send_work *w, struct packet *p)
{
	p->ah = w->ah;
	p->dest_qpn = w->remote_qpn & PSN_MASK;
	p->qkey = w->remote_qkey & QKEY_OWN ? qp->attr.qkey : w->remote_qkey;
	p->src_qpn = qp->qpn;
	p->checksum = w->flags & WORK_IP_CSUM;
}

/* The header of TSO lies in the window, as inline octets do. */
static void gather_header(const struct send_work *w, struct span_list *gather)
{
	gather->span[gather->count++] =
		(struct span){ .direct = (uint8_t *)(send_work_sge(w) + w->num_sge),
			       .length = w->tso_header };
	gather->length += w->tso_header;
}

enum reason datagram_segment(const struct qp *qp, const struct send_work *w,
			     const struct message *m, uint32_t done, const struct key_table *keys,
			     struct packet *p, struct span_list *gather)
{
	uint32_t offset = done * w->mss, n = MIN_OF(m->length - offset, w->mss);

	p->opcode = OPCODE(SERVICE_UD, OPB_SEND_ONLY);
	p->payload_length = w->tso_header + n;
	p->pad = (uint8_t)(-p->payload_length & 3);
	p->mss = w->mss;
	p->tso_header = w->tso_header;
	p->tso_segment = (uint16_t)done;
	p->tso_last = done + 1 == m->packets;
	/* As TCP's PSH: what waits for it gets all of it. */
	p->solicited = p->tso_last && (w->flags & WORK_SOLICITED);
	gather_header(w, gather);
	return key_spans_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, offset, n,
				 gather);
}

enum reason frame_packet(const struct qp *qp, const struct send_work *w, const struct message *m,
			 const struct key_table *keys, struct packet *p, struct span_list *gather)
{
	bool tso = w->opcode == WORK_TSO;

	p->opcode = 0; /* the frame is not RoCE's */
	p->payload_length = m->length + (tso ? w->tso_header : 0);
	p->mss = tso ? w->mss : 0;
	p->tso_header = tso ? w->tso_header : 0;
	p->checksum = w->flags & WORK_IP_CSUM;
	if (w->flags & WORK_INLINE) {
		p->payload = send_work_inline(w);
		return REASON_NONE;
	}
	if (tso)
		gather_header(w, gather);
	return key_spans_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, 0, m->length,
				 gather);
}

/* Receiving. */

static enum reason check_datagram(const struct qp *qp, const struct packet *p)
{
	if (p->qkey != qp->attr.qkey)
		return REASON_QKEY;
	return p->pad == (-p->payload_length & 3) ? REASON_NONE : REASON_LENGTH_PAYLOAD;
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

/* The memory that it names may not be written: a local error of the receive queue. */
static void receive_failed(struct qp *qp, const struct recv_work *offer, enum reason why)
{
	struct receive_done d = { .wr_id = offer->wr_id,
				  .srq = qp->srq,
				  .ticket = (uint32_t)qp->tickets.issued,
				  .status = verdict_of_unreliable(why)->receive_status,
				  .reason = (uint8_t)why };

	receive_push(&qp->receives, &d);
	enter_error(qp);
}

/* These octets are the message; a receive request takes them whole. */
static enum reason receive(struct qp *qp, const struct packet *p, const uint8_t *octets,
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
	if (length > 0) {
		out->flags |= OUTCOME_PLACE;
		out->source = octets;
		out->ticket = ticket_issue(&qp->tickets, TICKET_RECEIVE, p->psn, qp->resp.msn, 0);
	}
	receive_done(qp, p, offer, length);
	return REASON_NONE;
}

enum reason datagram_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			      const struct key_table *keys, struct outcome *out)
{
	enum reason why = check_datagram(qp, p);

	if (why != REASON_NONE)
		return why;
	return receive(qp, p, p->payload - GRH_LENGTH, p->payload_length + GRH_LENGTH, offer, keys,
		       out);
}

enum reason frame_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			   const struct key_table *keys, struct outcome *out)
{
	if (qp->state != QP_STATE_RTR && qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD &&
	    qp->state != QP_STATE_SQE)
		return REASON_QP_STATE;
	if (!qp_can_receive(qp))
		return REASON_BUSY;
	return receive(qp, p, p->payload, p->payload_length, offer, keys, out);
}
