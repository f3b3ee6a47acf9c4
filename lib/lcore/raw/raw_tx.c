/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames from raw queue pairs. A TSO request is cut into segments while it is gathered, so no octet
 * is copied twice. Each segment is a buffer; they are chained by mbuf.next until they leave.
 * rte_gso of DPDK 22.11 is not used: it does not know TCP over IPv6, and leaves the checksums to
 * the port.
 */
#include <string.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "lcore/raw/raw.h"
#include "lcore/capture/capture.h"
#include "lcore/inside.h"
#include "lcore/raw/tcp_segment.h"

/* ---- gathering ---- */

/* Where the next octet goes. A segment has at most `most` octets of payload behind the header. */
struct writer {
	struct lcore *l;
	struct staged_frame *s;
	struct rte_mbuf *last;
	uint32_t segments;
	uint32_t room; /* octets, in the last segment */
	uint32_t most;
	uint32_t header_length;
	uint8_t header[LIMIT_TSO_HEADER];
};

static void *extend(struct rte_mbuf *m, uint32_t octets)
{
	uint8_t *to = rte_pktmbuf_mtod(m, uint8_t *) + m->data_len;

	m->data_len = (uint16_t)(m->data_len + octets);
	m->pkt_len = m->data_len;
	return to;
}

static bool refuse(struct staged_frame *s, enum reason why)
{
	s->failed = true;
	s->refused = (uint8_t)why;
	return false;
}

/* The frame counts as sent but is dropped, as if the wire had lost it. */
static void lose(struct staged_frame *s)
{
	s->mbuf->data_len = 0;
	s->loop = true;
	s->sealed = true;
}

static bool next_segment(struct writer *w)
{
	struct rte_mbuf *m = w->s->mbuf;

	if (w->segments == LIMIT_TSO_SEGMENTS)
		return refuse(w->s, REASON_WORK_MALFORMED);
	if (w->segments > 0) {
		m = rte_pktmbuf_alloc(w->l->engine->pool);
		if (m == NULL) {
			count_reason(w->l, REASON_NO_BUFFER);
			lose(w->s);
			return false;
		}
		w->last->next = m;
	}
	if (w->header_length + w->most > rte_pktmbuf_tailroom(m))
		return refuse(w->s, REASON_FRAME_LENGTH);
	w->last = m;
	w->segments++;
	w->room = w->most;
	memcpy(extend(m, w->header_length), w->header, w->header_length);
	return true;
}

static void copy_part(struct writer *w, const struct span *from, uint32_t offset, uint32_t octets)
{
	void *to = extend(w->last, octets);
	struct lcore *l = w->l;

	if (from->direct != NULL)
		memcpy(to, (const uint8_t *)from->direct + offset, octets);
	else if (from->client == SPAN_NOBODY)
		memset(to, 0, octets);
	else
		l->gather_copy[l->gather_count++] = (struct peer_copy){
			.peer_address = from->peer_address + offset,
			.local = to,
			.length = octets,
			.memory = span_memory(l, w->s->qp, from),
		};
	w->room -= octets;
}

static bool copy_span(struct writer *w, const struct span *from, uint32_t skip)
{
	for (uint32_t done = skip; done < from->length;) {
		uint32_t part;

		if (w->room == 0 && !next_segment(w))
			return false;
		part = MIN_OF(from->length - done, w->room);
		copy_part(w, from, done, part);
		done += part;
	}
	return true;
}

/* The header is the first span. It is direct, because it lies in the send window. */
static void take_header(struct writer *w, const struct span_list *g, uint32_t octets)
{
	w->header_length = octets;
	memcpy(w->header, g->span[0].direct, octets);
}

static void gather(struct lcore *l, struct staged_frame *s, const struct packet *p)
{
	const struct span_list *g = &l->gather;
	struct writer w = { .l = l, .s = s, .most = p->payload_length };

	if (p->mss != 0) {
		take_header(&w, g, p->tso_header);
		w.most = p->mss;
	}
	if (!next_segment(&w))
		return;
	for (uint32_t i = 0; i < g->count; i++)
		if (!copy_span(&w, &g->span[i], i == 0 ? w.header_length : 0))
			return;
}

void raw_build(struct lcore *l, struct engine_qp *q, struct staged_frame *s)
{
	const struct packet *p = &s->packet;

	s->qp = q;
	s->raw = true;
	s->refused = REASON_NONE;
	s->port_by_qpns = false;
	s->loop = s->failed = s->unsent = s->kept = s->captured = s->sealed = s->summed = s->echo =
		s->lent = false;
	s->flow_state = q->flow_state;
	s->peer_first = (uint16_t)l->gather_count;
	if (p->payload == NULL) {
		gather(l, s, p);
	} else if (p->payload_length > rte_pktmbuf_tailroom(s->mbuf)) {
		refuse(s, REASON_FRAME_LENGTH);
	} else {
		memcpy(extend(s->mbuf, p->payload_length), p->payload, p->payload_length);
	}
	/* A frame that is refused or lost needs no payload. */
	if (s->failed || s->sealed)
		l->gather_count = s->peer_first;
	s->peer_count = (uint16_t)(l->gather_count - s->peer_first);
	if (s->peer_count == 0)
		raw_seal(l, s);
}

/* ---- checking and finishing ---- */

static bool finish_segments(struct staged_frame *s, const struct raw_frame *f)
{
	uint32_t header = s->packet.tso_header;
	struct tcp_segment segment = { 0 };

	if ((f->layers & (FLOW_LAYER_IPV4 | FLOW_LAYER_IPV6)) == 0)
		return refuse(s, REASON_WORK_MALFORMED);
	for (struct rte_mbuf *m = s->mbuf; m != NULL; m = m->next) {
		segment.last = m->next == NULL;
		if (!tcp_segment_finish(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, f->l3, header,
					&segment))
			return refuse(s, REASON_WORK_MALFORMED);
		segment.number++;
		segment.offset += m->data_len - header;
	}
	return true;
}

static bool is_to_us(const struct lcore *l, const uint8_t *frame)
{
	return mac_word(frame) == __atomic_load_n(&l->engine->mac_word, __ATOMIC_RELAXED);
}

void raw_seal(struct lcore *l, struct staged_frame *s)
{
	struct raw_frame f;
	uint8_t *frame;

	if (s->sealed || s->failed)
		return;
	frame = rte_pktmbuf_mtod(s->mbuf, uint8_t *);
	raw_frame_parse(&f, frame, s->mbuf->data_len);
	if (raw_frame_is_roce(&f, frame, s->mbuf->data_len)) {
		refuse(s, REASON_RAW_ROCE);
		return;
	}
	if (s->packet.mss != 0) {
		if (!finish_segments(s, &f))
			return;
	} else if (s->packet.checksum) {
		raw_frame_fill_checksums(&f, frame);
	}
	s->loop = raw_frame_is_multicast(frame) || is_to_us(l, frame) || s->mbuf->next != NULL;
	s->sealed = true;
}

void raw_refused(struct lcore *l, const struct staged_frame *s, nanotime now)
{
	enum work_status status =
		s->refused == REASON_FRAME_LENGTH ? STATUS_LOC_LEN_ERR : STATUS_LOC_QP_OP_ERR;

	count_reason(l, s->refused);
	qp_refused(s->qp->core, &s->packet, status, s->refused);
}

/* ---- sending ---- */

static bool loop(struct lcore *l, struct rte_mbuf *m, uint32_t sender)
{
	if (l->loop_head - l->loop_tail >= LIMIT_LOOP)
		return false;
	m->hash.usr = FRAME_RAW_LOOPED;
	m->tx_offload = sender;
	capture_frames(l, &m, 1, CAPTURE_HERE);
	l->loop[l->loop_head++ % LIMIT_LOOP] = m;
	return true;
}

/*
 * A copy for receivers on this host. The frame itself goes to the port. NULL: there is no receiver,
 * or no buffer.
 */
static struct rte_mbuf *loop_copy(struct lcore *l, struct rte_mbuf *m)
{
	if (!raw_frame_is_multicast(rte_pktmbuf_mtod(m, const uint8_t *)) ||
	    !raw_steering(l->engine))
		return NULL;
	return rte_pktmbuf_copy(m, l->engine->pool, 0, UINT32_MAX);
}

/* The first segment of the staged frame, without those behind it. */
static bool send_to_port(struct lcore *l, struct staged_frame *s)
{
	struct rte_mbuf *m = s->mbuf, *copy = loop_copy(l, m);
	uint32_t octets = m->pkt_len;

	frames_capture(l, &s, 1);
	if (port_send(l, &m, 1) == 0) {
		rte_pktmbuf_free(copy);
		return false;
	}
	s->captured = false; /* the next segment was not */
	l->stats.tx_packets++;
	l->stats.tx_octets += octets;
	/* A copy that the loop has no room for is lost, as on a wire. */
	if (copy != NULL && !loop(l, copy, s->qp->qpn))
		rte_pktmbuf_free(copy);
	return true;
}

/* False: there is no room, and the buffer stays the caller's. */
static bool send_segment(struct lcore *l, struct staged_frame *s)
{
	struct rte_mbuf *m = s->mbuf;
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	bool own = is_to_us(l, frame);

	if (l->engine->port != NULL && !own)
		return send_to_port(l, s);
	if (own || raw_frame_is_multicast(frame))
		return loop(l, m, s->qp->qpn);
	/* No receiver: the frame is lost, as on a wire. */
	count_reason(l, REASON_NEIGHBOUR_UNKNOWN);
	rte_pktmbuf_free(m);
	return true;
}

bool raw_send(struct lcore *l, struct staged_frame *s)
{
	if (s->mbuf->data_len == 0) {
		rte_pktmbuf_free(s->mbuf);
		return true;
	}
	while (s->mbuf != NULL) {
		struct rte_mbuf *m = s->mbuf, *next = m->next;

		m->next = NULL;
		if (!send_segment(l, s)) {
			m->next = next;
			return false;
		}
		s->mbuf = next;
	}
	return true;
}
