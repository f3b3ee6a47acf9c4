/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One frame: headers, payload, ICRC. What nearly every small message needs is here, inline, as its one caller (tx.c)
 * builds a frame for each packet; frame.c has the rest.
 */
#ifndef LCORE_FRAME_H
#define LCORE_FRAME_H

#include <rte_mbuf.h>

#include "lcore/datagram.h"
#include "lcore/inside.h"
#include "lcore/raw/raw.h"
#include "wire/encode.h"
#include "wire/header.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

static inline void frame_finish(struct staged_frame *s, size_t octets)
{
	s->mbuf->data_len = (uint16_t)octets;
	s->mbuf->pkt_len = (uint32_t)octets;
	s->sealed = true;
}

static inline void frame_begin(struct engine_qp *q, struct staged_frame *s)
{
	s->qp = q;
	s->sealed = s->failed = s->raw = s->unsent = s->kept = s->captured = s->echo = s->lent =
		false;
	s->port_by_qpns = false;
	s->refused = REASON_NONE;
	s->peer_count = 0;
	s->flow_state = q->flow_state;
}

/* Whether the payload leaves unchanged (UD only; the core sets it on no other packet). */
static inline bool frame_leaves_as_it_is(const struct packet *p)
{
	return p->mss == 0 && !p->checksum;
}

/* So short that one call sums headers and payload together, which costs less than two calls. */
static inline bool frame_is_short(const struct staged_frame *s, const struct flow *flow)
{
	return s->header_length - flow->length + s->packet.payload_length <= ICRC_ONE_CALL;
}

/* Copies direct spans. */
static inline void frame_gather(uint8_t *to, const struct span_list *g)
{
	for (uint32_t i = 0; i < g->count; i++) {
		memcpy(to, g->span[i].direct, g->span[i].length);
		to += g->span[i].length;
	}
}

/* Copies the payload of a short frame. */
static inline void frame_copy_short(const struct lcore *l, const struct packet *p, uint8_t *to)
{
	static_assert(ICRC_ONE_CALL - BTH_LENGTH <= COPY_SHORT, "frame_is_short");
	if (p->payload != NULL)
		copy_short(to, p->payload, p->payload_length);
	else if (l->gather.count == 1)
		copy_short(to, l->gather.span[0].direct, p->payload_length);
	else
		frame_gather(to, &l->gather);
}

/* A payload of which some may be in peer memory: that is read with the batch. */
void frame_fill_peer(struct lcore *l, struct engine_qp *q, struct staged_frame *s);
/* A payload from direct memory: any but a short one that goes on a wire as it is. */
void frame_fill_other(struct lcore *l, struct staged_frame *s, const struct flow *flow);

/* Copies a payload from direct memory. If the frame goes on a wire, the same pass sums it. */
static inline void frame_fill(struct lcore *l, struct staged_frame *s, const struct flow *flow)
{
	uint8_t *frame = rte_pktmbuf_mtod(s->mbuf, uint8_t *);
	const struct packet *p = &s->packet;
	size_t n = s->header_length;

	stage_switch(l->stages, STAGE_COPY_SUM);
	if (!s->summed || !frame_leaves_as_it_is(p) || !frame_is_short(s, flow)) {
		frame_fill_other(l, s, flow);
		return;
	}
	frame_copy_short(l, p, frame + n);
	frame_finish(s, packet_seal(frame, flow, n, p->payload_length));
}

static inline void frame_build_packet(struct lcore *l, struct engine_qp *q, struct staged_frame *s)
{
	uint8_t *frame = rte_pktmbuf_mtod(s->mbuf, uint8_t *);
	const struct flow *flow = &q->flow;
	const struct packet *p = &s->packet;

	frame_begin(q, s);
	if (q->flow_state == FLOW_BY_HANDLE)
		flow = datagram_route(l, q, s);
	if (flow == NULL) {
		s->failed = s->sealed = true;
		return;
	}
	s->loop = s->flow_state == FLOW_LOOP;
	s->summed = !s->loop || l->engine->sum_loop;
	s->l3 = flow->l3;
	s->header_length = (uint16_t)packet_encode(frame, flow, p, q->identification++);
	if (s->port_by_qpns)
		envelope_set_source_port(frame, flow, flow_source_port(0, q->qpn, p->dest_qpn));
	if (p->payload == NULL && p->payload_length > 0 && l->gather.has_peer) {
		frame_fill_peer(l, q, s);
		return;
	}
	frame_fill(l, s, flow);
}

/* Whether frames of packets like it (qp_next_alike) can be made from it. */
static inline bool frame_is_pattern(const struct staged_frame *s)
{
	return opcode_is_middle(s->packet.opcode) && s->sealed && !s->failed && s->summed &&
	       s->flow_state != FLOW_BY_HANDLE;
}

/* A packet like that of *before, as qp_next_alike() found it, in a new buffer. */
static inline void frame_build_alike(struct engine_qp *q, struct staged_frame *s,
				     const struct staged_frame *before,
				     const struct icrc_pattern *pattern, const uint8_t *payload)
{
	uint8_t *frame = rte_pktmbuf_mtod(s->mbuf, uint8_t *);
	const struct flow *flow = &q->flow;
	struct packet *p = &s->packet;
	size_t n = before->header_length;
	uint32_t sum;

	static_assert(offsetof(struct packet, sender) == 64, "a middle has nothing behind them");
	memcpy(p, &before->packet, offsetof(struct packet, sender));
	p->psn = (before->packet.psn + 1) & 0xffffff;
	p->ack_req = false;
	p->sender = 0;
	frame_begin(q, s);
	s->loop = before->loop;
	s->summed = true;
	s->l3 = before->l3;
	s->header_length = before->header_length;
	s->port_by_qpns = before->port_by_qpns;
	packet_encode_alike(frame, rte_pktmbuf_mtod(before->mbuf, const uint8_t *), flow->length,
			    p->psn);
	sum = icrc_pattern_copy(pattern, frame + flow->l3, n - flow->l3, frame + n, payload,
				p->payload_length);
	frame_finish(s, packet_seal_summed(frame, flow, n, p->payload_length, sum));
}

/*
 * Headers and payload of the packet in s->packet, gathered from l->gather; peer payload is read
 * later.
 */
static inline void frame_build(struct lcore *l, struct engine_qp *q, struct staged_frame *s)
{
	stage_switch(l->stages, STAGE_ENCODE);
	if (q->raw)
		raw_build(l, q, s);
	else
		frame_build_packet(l, q, s);
}

#endif
