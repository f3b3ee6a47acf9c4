/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends frames through the port in bursts, or round inside the engine. Frames that an outlet does
 * not take stay there (outlet.h). Every retry is bounded.
 */
#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "lcore/capture/capture.h"
#include "lcore/datagram.h"
#include "lcore/moving/lent.h"
#include "lcore/moving/outlet.h"
#include "lcore/raw/raw.h"

uint32_t port_send(struct lcore *l, struct rte_mbuf **m, uint32_t n)
{
	struct port *port = l->engine->port;
	uint32_t sent = 0;
	uint32_t *busy = &l->engine->tx_busy[l->tx_queue];

	for (uint32_t tries = 0; tries < LIMIT_SEND_TRIES && sent < n; tries++) {
		/* If there are fewer queues than lcores, lcores share a queue, one at a time. */
		if (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE) != 0)
			continue;
		sent += port->ops->tx_burst(port, l->tx_queue, m + sent, (uint16_t)(n - sent));
		__atomic_store_n(busy, 0, __ATOMIC_RELEASE);
	}
	if (sent > 0)
		l->outlets->outlet[OUTLET_PORT].stuck = false;
	return sent;
}

bool frame_goes_to_port(const struct staged_frame *s)
{
	return !s->loop && !s->failed && s->flow_state == FLOW_PORT;
}

void frames_capture(struct lcore *l, struct staged_frame **s, uint32_t n)
{
	if (!capture_is_on(l))
		return;
	for (uint32_t i = 0; i < n; i++) {
		if (!s[i]->captured)
			capture_frames(l, &s[i]->mbuf, 1, CAPTURE_SENT);
		s[i]->captured = true;
	}
}

uint32_t frames_burst(struct lcore *l, struct staged_frame **s, uint32_t n)
{
	struct rte_mbuf *m[LIMIT_BURST], *echo[LIMIT_BURST];
	uint64_t octets = 0;
	bool echoes = false;
	uint32_t sent;

	assert(n <= LIMIT_BURST);
	for (uint32_t i = 0; i < n; i++) {
		m[i] = s[i]->mbuf;
		octets += m[i]->pkt_len;
		if (unlikely(s[i]->echo)) {
			datagram_echo(l, m[i], &echo[i]);
			echoes = true;
		}
	}
	frames_capture(l, s, n);
	sent = port_send(l, m, n);
	for (uint32_t i = 0; echoes && i < n; i++)
		if (s[i]->echo && echo[i] != NULL)
			datagram_echoed(l, echo[i], s[i]->qp->qpn, i < sent);
	/* The frames that were sent are the port's now, so the others are counted. */
	for (uint32_t i = sent; i < n; i++)
		octets -= m[i]->pkt_len;
	l->stats.tx_packets += sent;
	l->stats.tx_octets += octets;
	return sent;
}

bool frame_send_one(struct lcore *l, struct staged_frame *s)
{
	if (s->raw && s->loop)
		return raw_send(l, s);
	if (s->lent && lent_is_watched(l) && !lent_fill(l, s)) {
		rte_pktmbuf_free(s->mbuf);
		return true;
	}
	if (s->loop) {
		bool sent = loop_output(l, s->mbuf, s->qp->qpn, s->packet.dest_qpn,
					s->lent	    ? FRAME_LENT
					: s->summed ? FRAME_RECEIVED
						    : FRAME_TRUSTED);

		l->outlets->outlet[OUTLET_LOOP].stuck &= !sent;
		return sent;
	}
	/* The address does not resolve: the frame is lost, as on a wire. Retries will report it. */
	count_reason(l, REASON_NEIGHBOUR_UNKNOWN);
	rte_pktmbuf_free(s->mbuf);
	return true;
}

/* The request fails; nothing behind it is sent, and later requests are flushed. */
static bool stops_its_queue(const struct staged_frame *s)
{
	return s->failed && (s->raw || s->refused != REASON_NONE);
}

/*
 * From the last to the first, so that each queue pair resumes at its earliest packet that has to be
 * made again. These are the packets for which a mover had no job, and those behind a failure.
 */
static void take_back(struct lcore *l, struct staged_frame *frame, uint32_t n, nanotime now)
{
	for (uint32_t i = n; i-- > 0;) {
		struct staged_frame *s = &frame[i];

		if (!s->unsent)
			continue;
		rte_pktmbuf_free(s->mbuf);
		s->qp->held_back = false;
		qp_unsent(s->qp->core, &s->packet, now);
		qp_settled(l, s->qp, now);
	}
}

/*
 * Tells the core what became of the frames that left or failed, in their order. Unreliable services
 * are told of each frame, even of one that was lost because nobody answers for its address.
 */
static void tell(struct lcore *l, struct staged_frame *frame, uint32_t n, nanotime now)
{
	struct engine_qp *told = NULL;

	for (uint32_t i = 0; i < n; i++) {
		struct staged_frame *s = &frame[i];

		if (s->unsent || s->kept || !(s->failed || s->qp->unreliable))
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

/* is_to_leave for a frame of an unreliable queue pair, or one with a reason not to be sent. */
static bool is_to_leave_at_all(struct staged_frame *s)
{
	/* A failure behind frames that wait is found again when its turn comes. */
	bool early = s->failed && s->qp->unreliable && s->qp->waiting > 0;

	if (s->unsent || early || (s->qp->unreliable && s->qp->held_back)) {
		s->unsent = true; /* otherwise the peer would have to reorder */
		s->qp->held_back = true;
	} else if (s->failed) {
		s->qp->held_back |= stops_its_queue(s);
		rte_pktmbuf_free(s->mbuf);
	}
	return !s->unsent && !s->failed;
}

/* Whether the frame is to be sent. If not, it has been dealt with. */
static inline bool is_to_leave(struct staged_frame *s)
{
	return (!s->unsent && !s->failed && !s->qp->unreliable) || is_to_leave_at_all(s);
}

static bool must_wait(const struct lcore *l, const struct staged_frame *s)
{
	return s->qp->waiting > 0 || outlet_waiting(&l->outlets->outlet[outlet_of_frame(s)]) > 0;
}

/*
 * Sends frames from this one on that go to the port together. Returns how many were dealt with;
 * none of them failed or has to be made again. *to_tell: some of them belong to unreliable queue
 * pairs.
 */
static uint32_t send_run(struct lcore *l, struct staged_frame *frame, uint32_t n, bool *to_tell,
			 nanotime now)
{
	struct staged_frame *s[LIMIT_BURST];
	uint32_t run, sent;

	if (outlet_waiting(&l->outlets->outlet[OUTLET_PORT]) > 0)
		return 0;
	n = MIN_OF(n, LIMIT_BURST);
	for (run = 0; run < n; run++) {
		struct staged_frame *f = &frame[run];

		if (!frame_goes_to_port(f) || f->qp->waiting > 0 || !is_to_leave(f))
			break;
		*to_tell |= f->qp->unreliable;
		s[run] = f;
	}
	sent = run > 0 ? frames_burst(l, s, run) : 0;
	for (uint32_t i = sent; i < run; i++) {
		s[i]->kept = outlet_keep(l, s[i], now);
	}
	return run;
}

static void send_or_keep(struct lcore *l, struct staged_frame *s, nanotime now)
{
	if (!is_to_leave(s))
		return;
	if (!must_wait(l, s) && frame_send_one(l, s))
		return;
	s->kept = outlet_keep(l, s, now);
}

void frames_send(struct lcore *l, struct staged_frame *frame, uint32_t n, nanotime now)
{
	bool unsent = false, to_tell = false;

	for (uint32_t i = 0, run; i < n; i += run) {
		run = send_run(l, &frame[i], n - i, &to_tell, now);
		if (run > 0)
			continue;
		send_or_keep(l, &frame[i], now);
		unsent |= frame[i].unsent;
		to_tell |= frame[i].failed || frame[i].qp->unreliable;
		run = 1;
	}
	if (unsent)
		take_back(l, frame, n, now);
	if (to_tell)
		tell(l, frame, n, now);
}
