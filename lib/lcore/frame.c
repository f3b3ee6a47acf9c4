/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One frame: headers, payload, ICRC. A payload that the engine maps is copied and summed in one
 * pass. A payload in peer memory is read later, in a batch, and the frame is sealed after that.
 * Some payloads are IP packets whose headers must be corrected (TSO, IBV_SEND_IP_CSUM on UD). They
 * are corrected when all of the payload is there, and summed after that.
 */
#include <string.h>

#include "lcore/datagram.h"
#include "lcore/inside.h"
#include "lcore/inner_ip.h"
#include "lcore/moving/lent.h"
#include "lcore/raw/raw.h"
#include "wire/encode.h"

static uint32_t gather_direct(uint8_t *to, const struct span_list *g, uint32_t sum)
{
	for (uint32_t i = 0; i < g->count; i++) {
		sum = icrc_copy(sum, to, g->span[i].direct, g->span[i].length);
		to += g->span[i].length;
	}
	return sum;
}

static void gather_unsummed(uint8_t *to, const struct span_list *g)
{
	for (uint32_t i = 0; i < g->count; i++) {
		memcpy(to, g->span[i].direct, g->span[i].length);
		to += g->span[i].length;
	}
}

/* Copies direct spans now. Peer spans are read with the batch. */
static __attribute__((noinline)) void gather_mixed(struct lcore *l, const struct engine_qp *q,
						   struct staged_frame *s, uint8_t *to)
{
	const struct span_list *g = &l->gather;

	s->peer_first = (uint16_t)l->gather_count;
	for (uint32_t i = 0; i < g->count; i++) {
		const struct span *span = &g->span[i];

		if (span->direct != NULL) {
			memcpy(to, span->direct, span->length);
		} else if (span->client == SPAN_NOBODY) {
			memset(to, 0, span->length);
		} else {
			l->gather_copy[l->gather_count++] = (struct peer_copy){
				.peer_address = span->peer_address,
				.local = to,
				.length = span->length,
				.memory = span_memory(l, q, span),
			};
		}
		to += span->length;
	}
	s->peer_count = (uint16_t)(l->gather_count - s->peer_first);
}

static void frame_finish(struct staged_frame *s, size_t octets)
{
	s->mbuf->data_len = (uint16_t)octets;
	s->mbuf->pkt_len = (uint32_t)octets;
	s->sealed = true;
}

static void frame_begin(struct engine_qp *q, struct staged_frame *s)
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
static bool leaves_as_it_is(const struct packet *p)
{
	return p->mss == 0 && !p->checksum;
}

/* False: the header of a TSO request is not a TCP header. The request fails. */
static bool put_right(const struct packet *p, uint8_t *payload)
{
	struct tcp_segment segment = { .number = p->tso_segment,
				       .offset = (uint32_t)p->tso_segment * p->mss,
				       .last = p->tso_last };

	if (p->mss != 0)
		return inner_ip_segment(payload, p->payload_length, p->tso_header, &segment);
	if (p->checksum)
		inner_ip_fill_checksums(payload, p->payload_length);
	return true;
}

/* The whole payload is in the frame. */
static void seal_filled(struct staged_frame *s, const struct flow *flow)
{
	uint8_t *frame = rte_pktmbuf_mtod(s->mbuf, uint8_t *);
	size_t n = s->header_length, length = s->packet.payload_length;

	if (!leaves_as_it_is(&s->packet) && !put_right(&s->packet, frame + n)) {
		s->failed = s->sealed = true;
		s->refused = REASON_WORK_MALFORMED;
		return;
	}
	frame_finish(s, s->summed ? packet_seal(frame, flow, n, length)
				  : packet_seal_unsummed(frame, n, length));
}

/* So short that one call sums headers and payload together, which costs less than two calls. */
static bool is_short(const struct staged_frame *s, const struct flow *flow)
{
	return s->header_length - flow->length + s->packet.payload_length <= ICRC_ONE_CALL;
}

static inline void copy_payload(const struct lcore *l, const struct packet *p, uint8_t *to)
{
	if (p->payload != NULL)
		memcpy(to, p->payload, p->payload_length);
	else if (p->payload_length > 0)
		gather_unsummed(to, &l->gather);
}

/* Copies the payload of a short frame. */
static inline void copy_short_payload(const struct lcore *l, const struct packet *p, uint8_t *to)
{
	static_assert(ICRC_ONE_CALL - BTH_LENGTH <= COPY_SHORT, "is_short");
	if (p->payload != NULL)
		copy_short(to, p->payload, p->payload_length);
	else if (l->gather.count == 1)
		copy_short(to, l->gather.span[0].direct, p->payload_length);
	else
		gather_unsummed(to, &l->gather);
}

/* Copies a payload from direct memory. If the frame goes on a wire, the same pass sums it. */
static inline void fill_direct(struct lcore *l, struct staged_frame *s, const struct flow *flow)
{
	uint8_t *frame = rte_pktmbuf_mtod(s->mbuf, uint8_t *);
	const struct packet *p = &s->packet;
	size_t n = s->header_length;
	uint32_t sum;

	stage_switch(l->stages, STAGE_COPY_SUM);
	if (!s->summed && lent_may(l, s)) {
		s->lent = true;
		frame_finish(s, packet_seal_unsummed(frame, n, p->payload_length));
		return;
	}
	if (!s->summed || !leaves_as_it_is(p)) {
		copy_payload(l, p, frame + n);
		seal_filled(s, flow);
		return;
	}
	if (is_short(s, flow)) {
		copy_short_payload(l, p, frame + n);
		frame_finish(s, packet_seal(frame, flow, n, p->payload_length));
		return;
	}
	sum = icrc_begin(frame + flow->l3, n - flow->l3);
	if (p->payload != NULL)
		sum = icrc_copy(sum, frame + n, p->payload, p->payload_length);
	else if (p->payload_length > 0)
		sum = gather_direct(frame + n, &l->gather, sum);
	frame_finish(s, packet_seal_summed(frame, flow, n, p->payload_length, sum));
}

static void packet_build(struct lcore *l, struct engine_qp *q, struct staged_frame *s)
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
		gather_mixed(l, q, s, frame + s->header_length);
		if (s->peer_count == 0) /* no part of it is in peer memory */
			frame_seal(s, NULL);
		return;
	}
	fill_direct(l, s, flow);
}

void frame_build(struct lcore *l, struct engine_qp *q, struct staged_frame *s)
{
	stage_switch(l->stages, STAGE_ENCODE);
	if (q->raw)
		raw_build(l, q, s);
	else
		packet_build(l, q, s);
}

void frame_seal(struct staged_frame *s, const struct peer_copy *copy)
{
	struct flow flow;

	if (s->sealed)
		return;
	for (uint32_t i = 0; i < s->peer_count; i++)
		s->failed |= !copy[s->peer_first + i].ok;
	if (s->failed)
		return;
	if (s->raw) {
		raw_seal(s->qp->lcore, s);
		return;
	}
	/* The address handle that led here may be gone. */
	flow.l3 = s->l3;
	seal_filled(s, &flow);
}
