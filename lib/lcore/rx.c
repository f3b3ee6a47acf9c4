/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received frames: from the port, from other lcores, and from this lcore itself. Each is decoded,
 * finds its queue pair, and goes to the core. What the core asks for is done at once.
 */
#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#include "base/bits.h"
#include "lcore/capture/capture.h"
#include "lcore/datagram.h"
#include "lcore/elsewhere.h"
#include "lcore/inside.h"
#include "lcore/moving/lent.h"
#include "lcore/moving/crossing.h"
#include "lcore/turns/ahead.h"
#include "queue/fence.h"
#include "queue/pointers.h"
#include "wire/alike.h"
#include "wire/decode.h"
#include "wire/header.h"
#include "wire/opcode.h"

static __attribute__((noinline)) void free_spent(struct lcore *l)
{
	stage_switch(l->stages, STAGE_RX);
	rte_mempool_put_bulk(l->spent[0]->pool, (void **)l->spent, l->spent_count);
	l->spent_count = 0;
}

/* All buffers in lcore.spent come from one pool, have one segment and no other user. */
static inline __attribute__((always_inline)) void spent(struct lcore *l, struct rte_mbuf *m)
{
	if (unlikely(m->nb_segs > 1)) {
		rte_pktmbuf_free(m);
		return;
	}
	m = rte_pktmbuf_prefree_seg(m);
	if (unlikely(m == NULL)) /* a capture has it, too */
		return;
	if (l->spent_count == LIMIT_BURST || (l->spent_count > 0 && l->spent[0]->pool != m->pool))
		free_spent(l);
	l->spent[l->spent_count++] = m;
}

void frame_spent(struct lcore *l, struct rte_mbuf *m)
{
	spent(l, m);
}

/*
 * A queue pair whose peer has one of our own addresses expects nothing from the port. A packet from
 * there would have the right addresses, but anybody may have sent it.
 */
static bool is_forged(const struct engine *e, const struct engine_qp *q, const struct packet *p)
{
	if (p->sender != 0)
		return false;
	return q->type == QP_TYPE_UD ? datagram_is_forged(e, p) : q->flow_state == FLOW_LOOP;
}

/* The packet is not for a program's RoCE queue pair, but for one of the few others, or for none. */
static void no_queue_pair(struct lcore *l, struct packet *p, struct rte_mbuf *m, uint32_t kind,
			  nanotime now)
{
	const struct elsewhere *x = elsewhere;

	while (x->input != NULL && x->qpn != p->dest_qpn)
		x++;
	if (x->input != NULL) {
		x->input(l, p, m, kind, now);
		return;
	}
	count_reason(l, p->dest_qpn == 0 ? REASON_QPN_RESERVED : REASON_QPN_UNKNOWN);
	rte_pktmbuf_free(m);
}

/*
 * If the port says neither "right" nor "wrong", the checksum is computed here. Frames of our own
 * have no such flags.
 */
static enum header_sum said_of_header(const struct rte_mbuf *m)
{
	uint64_t said = m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;

	if (said == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
		return HEADER_SUM_RIGHT;
	return said == RTE_MBUF_F_RX_IP_CKSUM_BAD ? HEADER_SUM_WRONG : HEADER_SUM_UNKNOWN;
}

/* A large frame from the port. Most of those in the middle of a message are like the one before (alike.h). */
static __attribute__((noinline)) enum reason frame_decode_alike(
	struct lcore *l, struct packet *p, const uint8_t *frame, size_t length,
	const struct decode_options *options)
{
	enum reason why;

	if (length == l->alike.length && alike_is(&l->alike, frame, length))
		return alike_decode(&l->alike, p, frame, l->stages);
	why = packet_decode(p, frame, length, options);
	if (why == REASON_NONE && opcode_is_middle(p->opcode))
		alike_remember(&l->alike, p, frame, length);
	return why;
}

static enum reason frame_decode(struct lcore *l, struct packet *p, const struct rte_mbuf *m,
				const struct decode_options *options)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	if (unlikely(l->engine->asks_port_for_sums))
		return packet_decode_said(p, frame, m->data_len, options, said_of_header(m));
	if (unlikely(m->data_len >= ALIKE_LEAST) && options->check_icrc)
		return frame_decode_alike(l, p, frame, m->data_len, options);
	return packet_decode(p, frame, m->data_len, options);
}

/*
 * Compiled three times: for the port's small and large frames, whose marks and options are known, and for the others. Returns
 * the queue pair of *p if it is large and frames of the port may go on with it in a run, otherwise NULL.
 */
static inline __attribute__((always_inline)) struct engine_qp *frame_input(
	struct lcore *l, struct rte_mbuf *m, uint32_t mark, const struct decode_options *options,
	bool large, bool watched, nanotime now, struct packet *p)
{
	uint32_t kind = frame_kind(mark);
	bool trusted = frame_way[kind].trusted, kept, goes_on;
	struct engine_qp *q;
	struct lcore *to;
	enum reason why;

	stage_switch(l->stages, STAGE_DECODE);
	if (m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0) {
		count_reason(l, REASON_RX_TRUNCATED);
		rte_pktmbuf_free(m);
		return NULL;
	}
	why = frame_decode(l, p, m, options);
	if (why != REASON_NONE) {
		frame_refused(l, m, why, now);
		return NULL;
	}
	stage_switch(l->stages, STAGE_TRANSPORT);
	p->sender = frame_sender(mark);
	if (!trusted && p->ecn == ECN_CE)
		l->stats.ecn_marked++;
	if (watched && frame_taken(l, p, m, now))
		return NULL;
	q = directory_find(l->engine, p->dest_qpn);
	if (kind == FRAME_LENT) {
		why = lent_open(l, q, p, m);
		kind = FRAME_TRUSTED;
	}
	if (unlikely(why != REASON_NONE)) {
		count_reason(l, why);
		spent(l, m);
		return NULL;
	}
	if (q == NULL || q->raw) {
		no_queue_pair(l, p, m, kind, now);
		return NULL;
	}
	to = qp_lcore(q);
	if (to != l) {
		l->stats.crossed += p->sender == 0;
		hand_over(l, to, m, frame_mark(FRAME_TRUSTED, p->sender));
		return NULL;
	}
	if (is_forged(l->engine, q, p)) {
		count_reason(l, REASON_SOURCE_OWN);
		rte_pktmbuf_free(m);
		return NULL;
	}
	q->received++;
	if (q->type == QP_TYPE_UD)
		kept = datagram_input(l, q, p, m, now);
	else
		kept = packet_input(l, q, p, m, now);
	if (kept)
		return NULL;
	goes_on = large && opcode_is_middle(p->opcode) && options->check_icrc && !watched &&
		  run_may_follow(l, q, m);
	spent(l, m);
	return goes_on ? q : NULL;
}

/* A large frame, the first of n from the port. Returns how many of the others were taken with it, as a run. */
static __attribute__((noinline)) uint32_t large_input(struct lcore *l, struct rte_mbuf **m,
						      uint32_t n,
						      const struct decode_options *options,
						      bool watched, nanotime now)
{
	struct packet p;
	struct engine_qp *q = frame_input(l, m[0], FRAME_RECEIVED, options, true, watched, now, &p);

	return q != NULL ? run_rx(l, q, &p, m + 1, n - 1, now) : 0;
}

static struct decode_options options_of(const struct lcore *l, bool trusted)
{
	return (struct decode_options){ .check_icrc = !trusted,
					.vlan = l->engine->vlan,
					.stages = l->stages };
}

static uint32_t port_burst(struct lcore *l, nanotime now)
{
	const struct decode_options options = options_of(l, false);
	struct port *port = l->engine->port;
	bool watched = frame_is_watched(l->engine), crossing = l->engine->lcores > 1;
	struct rte_mbuf *m[LIMIT_BURST];
	uint64_t octets = 0;
	uint32_t n;

	n = port->ops->rx_burst(port, l->queue, m, LIMIT_BURST);
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	if (ahead_helps(l))
		ahead_of_frames(l, m, n);
	capture_frames(l, m, n, CAPTURE_RECEIVED);
	for (uint32_t i = 0; i < n; i++) {
		struct packet p;
		uint32_t run;

		octets += m[i]->pkt_len;
		if (crossing && crossing_takes(l, m[i]))
			continue;
		if (likely(m[i]->pkt_len < ALIKE_LEAST)) {
			frame_input(l, m[i], FRAME_RECEIVED, &options, false, watched, now, &p);
			continue;
		}
		run = large_input(l, m + i, n - i, &options, watched, now);
		octets += (uint64_t)run * l->alike.length;
		i += run;
	}
	l->stats.rx_packets += n;
	l->stats.rx_octets += octets;
	return n;
}

/* As many frames as a tx round makes, so that arrivals do not pile up behind what is sent. */
static uint32_t port_input(struct lcore *l, nanotime now)
{
	uint32_t total = 0, n;

	if (l->queue == UINT16_MAX || crossing_waits(l))
		return 0;
	do {
		n = port_burst(l, now);
		total += n;
	} while (n == LIMIT_BURST && total < LIMIT_ROUND + LIMIT_TURN && !crossing_waits(l));
	return total;
}

/* A frame from inside the engine. Its mark says what to do. */
static void marked_input(struct lcore *l, struct rte_mbuf *m, nanotime now)
{
	const struct frame_way *way = &frame_way[frame_kind(m->hash.usr)];
	const struct decode_options options = options_of(l, way->trusted);
	struct packet p;

	if (way->whole != NULL)
		way->whole(l, m, now);
	else
		frame_input(l, m, m->hash.usr, &options, false,
			    !way->trusted && frame_is_watched(l->engine), now, &p);
}

static uint32_t inbox_input(struct lcore *l, nanotime now)
{
	void *m[LIMIT_BURST];
	uint32_t n;

	if (rte_ring_empty(l->inbox))
		return 0;
	n = pointers_take(l->inbox, m, LIMIT_BURST);
	for (uint32_t i = 0; i < n; i++)
		marked_input(l, m[i], now);
	return n;
}

static uint32_t loop_input(struct lcore *l, nanotime now)
{
	uint32_t n = MIN_OF(l->loop_head - l->loop_tail, LIMIT_LOOP_BURST);

	for (uint32_t i = 0; i < n; i++)
		marked_input(l, l->loop[l->loop_tail++ % LIMIT_LOOP], now);
	return n;
}

/* A frame of ours for one of our own addresses. False: no room, and it is still the caller's. */
bool loop_output(struct lcore *l, struct rte_mbuf *m, uint32_t sender, uint32_t dest_qpn,
		 enum frame_kind kind)
{
	struct lcore *to = l;

	if ((dest_qpn & 15) < l->engine->lcores)
		to = &l->engine->lcore[dest_qpn & 15];
	m->hash.usr = frame_mark(kind, sender);
	if (to == l) {
		if (l->loop_head - l->loop_tail >= LIMIT_LOOP)
			return false;
		capture_frames(l, &m, 1, CAPTURE_HERE);
		l->loop[l->loop_head++ % LIMIT_LOOP] = m;
		return true;
	}
	if (capture_is_on(l)) {
		if (rte_ring_full(to->inbox))
			return false; /* before it is captured, because it will be tried again */
		capture_frames(l, &m, 1, CAPTURE_HERE);
	}
	if (!pointer_put(to->inbox, m))
		return false;
	queue_fence(); /* as in crossing.c */
	if (__atomic_load_n(&to->sleeping, __ATOMIC_SEQ_CST))
		lcore_wake(to);
	return true;
}

uint32_t rx_poll(struct lcore *l, nanotime now)
{
	uint32_t work = 0;

	if (crossing_waits(l))
		work += crossing_flush(l, now);
	if (l->engine->port != NULL)
		work += port_input(l, now);
	work += inbox_input(l, now);
	work += loop_input(l, now);
	if (work > 0)
		place_flush(l, now);
	qps_settle(l, now);
	if (l->spent_count > 0)
		free_spent(l);
	if (l->exceptions > 0)
		elsewhere_flush(l);
	return work;
}
