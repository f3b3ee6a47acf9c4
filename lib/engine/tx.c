/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: queue pairs with something to send stand in the ready list and take turns of at most
 * LIMIT_TURN packets. Frames of a round are staged in the order in which they were made; those
 * whose payload lies in peer memory are completed by one batch of copies before anything leaves.
 */
#include <string.h>

#include "base/bits.h"
#include "engine/engine.h"
#include "wire/encode.h"

#define ROUND_PACKETS 64u /* of all queue pairs in one poll: what came in is looked at in between */
#define SEND_TRIES    4u /* of a port that takes nothing, before the frames are taken back */

void ready_add(struct lcore *l, struct engine_qp *q)
{
	TAILQ_INSERT_TAIL(&l->ready, q, ready_link);
	q->is_ready = true;
}

void ready_remove(struct lcore *l, struct engine_qp *q)
{
	if (!q->is_ready)
		return;
	TAILQ_REMOVE(&l->ready, q, ready_link);
	q->is_ready = false;
}

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

/* Direct spans are copied now, peer spans when the batch is. */
static void gather_mixed(struct lcore *l, struct staged_frame *s, uint8_t *to)
{
	const struct span_list *g = &l->gather;

	s->peer_first = (uint16_t)l->gather_count;
	for (uint32_t i = 0; i < g->count; i++) {
		const struct span *span = &g->span[i];

		if (span->direct != NULL) {
			memcpy(to, span->direct, span->length);
		} else {
			l->gather_copy[l->gather_count++] = (struct peer_copy){
				.peer_address = span->peer_address,
				.local = to,
				.length = span->length,
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

static void frame_build(struct lcore *l, struct engine_qp *q, struct staged_frame *s)
{
	uint8_t *frame = rte_pktmbuf_mtod(s->mbuf, uint8_t *);
	const struct packet *p = &s->packet;
	bool summed = q->flow_state != FLOW_LOOP || l->engine->sum_loop;
	size_t n = packet_encode(frame, &q->flow, p, q->identification++);
	uint32_t sum;

	s->qp = q;
	s->loop = q->flow_state == FLOW_LOOP;
	s->summed = summed;
	s->failed = false;
	s->unsent = false;
	s->sealed = false;
	s->peer_count = 0;
	s->header_length = (uint16_t)n;
	if (p->payload == NULL && p->payload_length > 0 && l->gather.has_peer) {
		gather_mixed(l, s, frame + n);
		return;
	}
	if (!summed) {
		if (p->payload != NULL)
			memcpy(frame + n, p->payload, p->payload_length);
		else if (p->payload_length > 0)
			gather_unsummed(frame + n, &l->gather);
		frame_finish(s, packet_seal_unsummed(frame, n, p->payload_length));
		return;
	}
	sum = icrc_begin(frame + q->flow.l3, n - q->flow.l3);
	if (p->payload != NULL)
		sum = icrc_copy(sum, frame + n, p->payload, p->payload_length);
	else if (p->payload_length > 0)
		sum = gather_direct(frame + n, &l->gather, sum);
	frame_finish(s, packet_seal_summed(frame, &q->flow, n, p->payload_length, sum));
}

/* One turn of a queue pair. Returns packets staged; the queue pair leaves the list when it has no more. */
static uint32_t qp_turn(struct lcore *l, struct engine_qp *q, nanotime now)
{
	nanotime not_before;
	uint32_t n;

	for (n = 0;
	     n < LIMIT_TURN && l->staged < STAGE_MAX && l->gather_count + LIMIT_SPANS <= GATHER_MAX;
	     n++) {
		struct staged_frame *s = &l->stage[l->staged];

		s->mbuf = rte_pktmbuf_alloc(l->engine->pool);
		if (s->mbuf == NULL) {
			count_reason(l, REASON_NO_BUFFER);
			return n;
		}
		span_list_clear(&l->gather);
		switch (qp_next_packet(q->core, &l->engine->keys, now, &s->packet, &l->gather,
				       &not_before)) {
		case NEXT_PACKET:
			frame_build(l, q, s);
			l->staged++;
			continue;
		case NEXT_NOT_BEFORE:
			wheel_set(&l->wheel, q, not_before);
			break;
		case NEXT_NOTHING:
			break;
		}
		rte_pktmbuf_free(s->mbuf);
		ready_remove(l, q);
		wheel_set(&l->wheel, q, qp_deadline(q->core));
		return n;
	}
	wheel_set(&l->wheel, q, qp_deadline(q->core));
	return n;
}

static bool frame_gathered(const struct lcore *l, const struct staged_frame *s)
{
	for (uint32_t i = 0; i < s->peer_count; i++)
		if (!l->gather_copy[s->peer_first + i].ok)
			return false;
	return true;
}

/* Reads the peer spans of all staged frames, one batch a client, and seals the frames. */
static void stage_gather(struct lcore *l, nanotime now)
{
	for (uint32_t i = 0; i < l->staged;) {
		struct staged_frame *s = &l->stage[i];
		uint32_t first = s->peer_first, count = 0;
		struct client *c = s->qp->client;

		/* Neighbours in the stage whose copies are of one client go together. */
		for (; i < l->staged && l->stage[i].qp->client == c; i++)
			if (!l->stage[i].sealed) {
				if (count == 0)
					first = l->stage[i].peer_first;
				count += l->stage[i].peer_count;
			}
		if (count > 0)
			client_copy(l, c, &l->gather_copy[first], count, now);
	}
	for (uint32_t i = 0; i < l->staged; i++) {
		struct staged_frame *s = &l->stage[i];
		uint8_t *frame = rte_pktmbuf_mtod(s->mbuf, uint8_t *);

		if (s->sealed)
			continue;
		if (!frame_gathered(l, s)) {
			s->failed = true;
			continue;
		}
		frame_finish(s, s->summed ? packet_seal(frame, &s->qp->flow, s->header_length,
							s->packet.payload_length)
					  : packet_seal_unsummed(frame, s->header_length,
								 s->packet.payload_length));
	}
	for (uint32_t i = 0; i < l->staged; i++) {
		struct staged_frame *s = &l->stage[i];

		if (!s->failed || s->qp->core == NULL)
			continue;
		qp_gather_failed(s->qp->core, &s->packet, now);
		qp_settled(l, s->qp, now);
	}
}

static uint32_t port_send(struct lcore *l, struct rte_mbuf **m, uint32_t n)
{
	struct port *port = l->engine->port;
	uint32_t sent = 0;
	uint32_t *busy = &l->engine->tx_busy[l->tx_queue];

	for (uint32_t tries = 0; tries < SEND_TRIES && sent < n; tries++) {
		/* With fewer queues than lcores a queue is shared, one at a time. */
		if (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE) != 0)
			continue;
		sent += port->ops->tx_burst(port, l->tx_queue, m + sent, (uint16_t)(n - sent));
		__atomic_store_n(busy, 0, __ATOMIC_RELEASE);
	}
	return sent;
}

/*
 * Frames [first, end) go to the port in one burst. What it does not take stays ours, and nothing
 * of those queue pairs may overtake it.
 */
static void send_run(struct lcore *l, uint32_t first, uint32_t end)
{
	struct rte_mbuf *m[STAGE_MAX];
	uint32_t n = end - first;
	uint32_t sent;

	for (uint32_t i = 0; i < n; i++)
		m[i] = l->stage[first + i].mbuf;
	for (uint32_t i = 0; i < n; i++)
		l->stats.tx_octets += m[i]->pkt_len;
	sent = port_send(l, m, n);
	l->stats.tx_packets += sent;
	for (uint32_t i = sent; i < n; i++) {
		l->stats.tx_octets -= m[i]->pkt_len;
		l->stage[first + i].unsent = true;
		l->stage[first + i].qp->held_back = true;
	}
}

static void send_one(struct lcore *l, struct staged_frame *s)
{
	if (s->failed) {
		rte_pktmbuf_free(s->mbuf);
	} else if (s->loop) {
		s->unsent =
			s->qp->held_back || !loop_output(l, s->mbuf, s->packet.dest_qpn, s->summed);
		s->qp->held_back = s->unsent;
	} else {
		/* Nobody answers for that address: lost, as on a wire; retries will tell. */
		count_reason(l, REASON_NEIGHBOUR_UNKNOWN);
		rte_pktmbuf_free(s->mbuf);
	}
}

/* Last first, so that each queue pair ends at the earliest packet that was not sent. */
static void take_back(struct lcore *l, nanotime now)
{
	for (uint32_t i = l->staged; i-- > 0;) {
		struct staged_frame *s = &l->stage[i];

		if (!s->unsent)
			continue;
		count_reason(l, REASON_TX_FULL);
		rte_pktmbuf_free(s->mbuf);
		s->qp->held_back = false;
		qp_unsent(s->qp->core, &s->packet, now);
		qp_settled(l, s->qp, now);
	}
}

static bool goes_to_port(const struct staged_frame *s)
{
	return !s->loop && !s->failed && s->qp->flow_state == FLOW_PORT;
}

static void stage_send(struct lcore *l, nanotime now)
{
	bool unsent = false;

	for (uint32_t i = 0; i < l->staged;) {
		uint32_t end = i;

		while (end < l->staged && goes_to_port(&l->stage[end]))
			end++;
		if (end > i)
			send_run(l, i, end);
		else
			send_one(l, &l->stage[end++]);
		unsent |= l->stage[end - 1].unsent;
		i = end;
	}
	if (unsent)
		take_back(l, now);
	l->staged = 0;
	l->gather_count = 0;
}

uint32_t tx_poll(struct lcore *l, nanotime now)
{
	struct engine_qp *q;
	uint32_t staged = 0;

	while (staged < ROUND_PACKETS && (q = TAILQ_FIRST(&l->ready)) != NULL) {
		uint32_t n = qp_turn(l, q, now);

		staged += n;
		if (!q->is_ready)
			continue;
		TAILQ_REMOVE(&l->ready, q, ready_link);
		TAILQ_INSERT_TAIL(&l->ready, q, ready_link);
		if (n < LIMIT_TURN)
			break; /* no buffer, or the stage is full */
	}
	if (l->staged == 0)
		return staged;
	if (l->gather_count > 0)
		stage_gather(l, now);
	stage_send(l, now);
	return staged;
}
