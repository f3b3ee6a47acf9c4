/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends frames: through the port in bursts, or round inside the engine. Every retry is bounded. */
#include "lcore/capture.h"
#include "lcore/datagram.h"
#include "lcore/inside.h"
#include "lcore/raw/raw.h"

#define STALL (LIMIT_STALL_US * TIME_US)

uint32_t port_send(struct lcore *l, struct rte_mbuf **m, uint32_t n)
{
	struct port *port = l->engine->port;
	uint32_t sent = 0;
	uint32_t *busy = &l->engine->tx_busy[l->tx_queue];

	/* Before the port has them. One that it does not take is captured once more when it is sent. */
	capture_frames(l, m, n, CAPTURE_SENT);
	for (uint32_t tries = 0; tries < LIMIT_SEND_TRIES && sent < n; tries++) {
		/* With fewer queues than lcores a queue is shared, one at a time. */
		if (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE) != 0)
			continue;
		sent += port->ops->tx_burst(port, l->tx_queue, m + sent, (uint16_t)(n - sent));
		__atomic_store_n(busy, 0, __ATOMIC_RELEASE);
	}
	return sent;
}

/*
 * n frames go to the port in one burst. What it does not take stays ours, and nothing
 * of those queue pairs may overtake it.
 */
static void send_run(struct lcore *l, struct staged_frame *s, uint32_t n)
{
	struct rte_mbuf *m[LIMIT_STAGE], *echo[LIMIT_STAGE];
	uint32_t sent;

	for (uint32_t i = 0; i < n; i++)
		m[i] = s[i].mbuf;
	for (uint32_t i = 0; i < n; i++) {
		l->stats.tx_octets += m[i]->pkt_len;
		if (s[i].echo)
			datagram_echo(l, m[i], &echo[i]);
	}
	sent = port_send(l, m, n);
	l->stats.tx_packets += sent;
	for (uint32_t i = 0; i < n; i++)
		if (s[i].echo && echo[i] != NULL)
			datagram_echoed(l, echo[i], s[i].qp->qpn, i < sent);
	for (uint32_t i = sent; i < n; i++) {
		l->stats.tx_octets -= m[i]->pkt_len;
		s[i].unsent = true;
		s[i].qp->held_back = true;
	}
}

/* The request fails; nothing behind it is sent, and later requests are flushed. */
static bool stops_its_queue(const struct staged_frame *s)
{
	return s->failed && (s->raw || s->refused != REASON_NONE);
}

static void send_one(struct lcore *l, struct staged_frame *s)
{
	if (s->unsent) {
		s->qp->held_back = true;
	} else if (s->failed) {
		s->qp->held_back |= stops_its_queue(s);
		rte_pktmbuf_free(s->mbuf);
	} else if (s->qp->unreliable && s->qp->held_back) {
		s->unsent = true; /* the peer would have to reorder */
	} else if (s->raw && s->loop) {
		raw_send(l, s);
		s->qp->held_back = s->unsent;
	} else if (s->loop) {
		s->unsent = s->qp->held_back ||
			    !loop_output(l, s->mbuf, s->qp->qpn, s->packet.dest_qpn, s->summed);
		s->qp->held_back = s->unsent;
	} else {
		/* The address does not resolve: the frame is lost, as on a wire. Retries will report it. */
		count_reason(l, REASON_NEIGHBOUR_UNKNOWN);
		rte_pktmbuf_free(s->mbuf);
	}
}

/* From the last to the first, so that each queue pair resumes at its earliest unsent packet. */
static void take_back(struct lcore *l, struct staged_frame *frame, uint32_t n, nanotime now)
{
	for (uint32_t i = n; i-- > 0;) {
		struct staged_frame *s = &frame[i];

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
	return !s->loop && !s->failed && !s->unsent && s->flow_state == FLOW_PORT &&
	       !(s->qp->unreliable && s->qp->held_back);
}

/*
 * What became of the frames that were not taken back, in their order: unreliable services are told
 * of each, also of what was lost because nobody answers for its address.
 */
static void tell(struct lcore *l, struct staged_frame *frame, uint32_t n, nanotime now)
{
	struct engine_qp *told = NULL;

	for (uint32_t i = 0; i < n; i++) {
		struct staged_frame *s = &frame[i];

		if (s->unsent || !(s->failed || s->qp->unreliable))
			continue;
		if (told != NULL && told != s->qp)
			qp_settled(l, told, now);
		told = s->qp;
		if (stops_its_queue(s))
			s->qp->held_back = false;
		if (s->refused != REASON_NONE)
			raw_refused(l, s, now);
		else if (s->failed)
			qp_gather_failed(s->qp->core, &s->packet);
		else
			qp_sent(s->qp->core, &s->packet);
	}
	if (told != NULL)
		qp_settled(l, told, now);
}

void frames_send(struct lcore *l, struct staged_frame *frame, uint32_t n, nanotime now)
{
	bool unsent = false, to_tell = false;

	for (uint32_t i = 0; i < n;) {
		uint32_t end = i;

		while (end < n && goes_to_port(&frame[end]))
			end++;
		if (end > i)
			send_run(l, &frame[i], end - i);
		else
			send_one(l, &frame[end++]);
		unsent |= frame[end - 1].unsent;
		for (; i < end; i++)
			to_tell |= frame[i].failed || frame[i].qp->unreliable;
	}
	if (unsent) {
		take_back(l, frame, n, now);
		l->stalled_until = now + STALL;
	}
	if (to_tell)
		tell(l, frame, n, now);
}
