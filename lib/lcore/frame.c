/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One frame: headers, payload, ICRC. A payload that the engine maps is copied and summed in one
 * pass. A payload in peer memory is read later, in a batch, and the frame is sealed after that.
 * Some payloads are IP packets whose headers must be corrected (TSO, IBV_SEND_IP_CSUM on UD). They
 * are corrected when all of the payload is there, and summed after that.
 */
#include <string.h>

#include "lcore/frame.h"
#include "lcore/raw/inner_ip.h"
#include "lcore/moving/lent.h"

/* At least one span. */
static uint32_t gather_direct(uint8_t *frame, size_t l3, size_t n, const struct span_list *g)
{
	const struct span *span = &g->span[0];
	uint32_t sum = icrc_begin_copy(frame + l3, n - l3, frame + n, span->direct, span->length);

	for (uint32_t i = 1; i < g->count; i++) {
		n += span->length;
		span = &g->span[i];
		sum = icrc_copy(sum, frame + n, span->direct, span->length);
	}
	return sum;
}

/* Copies direct spans now. Peer spans are read with the batch. */
static void gather_mixed(struct lcore *l, const struct engine_qp *q, struct staged_frame *s,
			 uint8_t *to)
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

void frame_fill_peer(struct lcore *l, struct engine_qp *q, struct staged_frame *s)
{
	gather_mixed(l, q, s, rte_pktmbuf_mtod(s->mbuf, uint8_t *) + s->header_length);
	if (s->peer_count == 0) /* no part of it is in peer memory */
		frame_seal(s, NULL);
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

	if (!frame_leaves_as_it_is(&s->packet) && !put_right(&s->packet, frame + n)) {
		s->failed = s->sealed = true;
		s->refused = REASON_WORK_MALFORMED;
		return;
	}
	frame_finish(s, s->summed ? packet_seal(frame, flow, n, length)
				  : packet_seal_unsummed(frame, n, length));
}

static inline void copy_payload(const struct lcore *l, const struct packet *p, uint8_t *to)
{
	if (p->payload != NULL)
		memcpy(to, p->payload, p->payload_length);
	else if (p->payload_length > 0)
		frame_gather(to, &l->gather);
}

void frame_fill_other(struct lcore *l, struct staged_frame *s, const struct flow *flow)
{
	uint8_t *frame = rte_pktmbuf_mtod(s->mbuf, uint8_t *);
	const struct packet *p = &s->packet;
	size_t n = s->header_length;
	uint32_t sum;

	if (!s->summed && lent_may(l, s)) {
		s->lent = true;
		frame_finish(s, packet_seal_unsummed(frame, n, p->payload_length));
		return;
	}
	if (!s->summed || !frame_leaves_as_it_is(p)) {
		copy_payload(l, p, frame + n);
		seal_filled(s, flow);
		return;
	}
	if (p->payload != NULL)
		sum = icrc_begin_copy(frame + flow->l3, n - flow->l3, frame + n, p->payload,
				      p->payload_length);
	else if (p->payload_length > 0)
		sum = gather_direct(frame, flow->l3, n, &l->gather);
	else
		sum = icrc_begin(frame + flow->l3, n - flow->l3);
	frame_finish(s, packet_seal_summed(frame, flow, n, p->payload_length, sum));
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
