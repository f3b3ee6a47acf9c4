/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages in and out: datagrams of queue pair 1 on the port, or a queue if the peer is an id of
 * this engine. Each tick handles a limited number, so that programs' commands have their turn.
 *
 * Atomics: tx_busy is the lock of a tx queue, which the lcore's thread and this one (for a sleeping
 * lcore) may use. Acquire and release order the port's own state.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_ring.h>

#include "base/bits.h"
#include "control/cm/cm_manager.h"
#include "lcore/capture/capture.h"
#include "queue/pointers.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/opcode.h"

#define MAC_GROUP 1u /* of the first octet */

static struct rte_ring *make_ring(struct engine *e, const char *what)
{
	char name[32];

	snprintf(name, sizeof(name), "%s-%08x", what, (uint32_t)e->id);
	return rte_ring_create(name, LIMIT_CM_MADS, SOCKET_ID_ANY, RING_F_SC_DEQ);
}

int cm_mads_open(struct engine *e)
{
	STAILQ_INIT(&e->control->cm->queue);
	e->established = make_ring(e, "ue");
	e->mads = make_ring(e, "um");
	return e->mads != NULL && e->established != NULL ? 0 : ENOMEM;
}

static struct cm_queued *queue_take(struct cm_manager *m)
{
	struct cm_queued *q = STAILQ_FIRST(&m->queue);

	if (q == NULL)
		return NULL;
	STAILQ_REMOVE_HEAD(&m->queue, link);
	m->queued--;
	return q;
}

void cm_mads_close(struct engine *e)
{
	struct cm_queued *q;

	while ((q = queue_take(e->control->cm)) != NULL)
		free(q);
	pointers_free_frames(e->mads);
	rte_ring_free(e->established);
	e->mads = e->established = NULL;
}

/* ---- out ---- */

static void send_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct cm_manager *m = arg;
	struct port *port = l->engine->port;
	uint32_t *busy = &l->engine->tx_busy[l->tx_queue];
	uint32_t sent;

	while (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE) != 0)
		rte_pause();
	capture_frames(l, m->out, m->outs, CAPTURE_SENT);
	sent = port->ops->tx_burst(port, l->tx_queue, m->out, (uint16_t)m->outs);
	__atomic_store_n(busy, 0, __ATOMIC_RELEASE);
	l->stats.tx_packets += sent;
	/*
	 * A frame that the port does not take is lost, as on a wire. The state machine sends it
	 * again.
	 */
	for (uint32_t i = sent; i < m->outs; i++)
		rte_pktmbuf_free(m->out[i]);
	m->outs = 0;
}

void cm_flush(struct engine *e)
{
	if (e->control->cm->outs > 0)
		lcore_call(&e->lcore[0], send_on_lcore, e->control->cm);
}

void cm_done(struct engine *e)
{
	cm_flush(e);
	if (!pthread_equal(pthread_self(), e->control->thread))
		control_wake(e);
}

static void to_ourselves(struct engine *e, const struct qp_path *path, const struct cm_message *m)
{
	struct cm_manager *cm = e->control->cm;
	struct cm_queued *q;

	if (cm->queued >= LIMIT_CM_QUEUE)
		return;
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return;
	q->input.source = path->sgid;
	q->input.destination = path->dgid;
	q->input.traffic_class = path->traffic_class;
	q->input.message = *m;
	STAILQ_INSERT_TAIL(&cm->queue, q, link);
	cm->queued++;
}

static void to_port(struct engine *e, const struct flow *flow, const struct cm_message *m)
{
	struct cm_manager *cm = e->control->cm;
	struct packet p = { .opcode = SERVICE_UD << 5 | OPB_SEND_ONLY,
			    .mig_req = true,
			    .pkey = CM_PKEY,
			    .dest_qpn = GSI_QPN,
			    .psn = cm->psn++ & 0xffffff,
			    .qkey = GSI_QKEY,
			    .src_qpn = GSI_QPN,
			    .payload_length = MAD_OCTETS };
	struct rte_mbuf *b = rte_pktmbuf_alloc(e->pool);
	uint8_t *frame;
	size_t n;

	if (b == NULL)
		return;
	frame = rte_pktmbuf_mtod(b, uint8_t *);
	n = packet_encode(frame, flow, &p, cm->identification++);
	cm_message_encode(m, frame + n);
	b->data_len = (uint16_t)packet_seal(frame, flow, n, MAD_OCTETS);
	b->pkt_len = b->data_len;
	cm->out[cm->outs++] = b;
	if (cm->outs == ARRAY_SIZE(cm->out))
		cm_flush(e);
}

void cm_send(struct engine *e, struct cm_link *l, const struct cm_message *m)
{
	struct mac mac = { { 0 } };
	struct flow flow;

	l->sent++;
	if (gid_is_own(e, &l->path.dgid)) {
		to_ourselves(e, &l->path, m);
		return;
	}
	if (flow_resolve(e, &l->path.sgid, &l->path.dgid, &mac) == FLOW_PORT) {
		l->mac = mac;
		l->has_mac = true;
	}
	if (e->port == NULL || !l->has_mac)
		return; /* the state machine sends it again */
	flow_make(e, &l->path, GSI_QPN, GSI_QPN, &l->mac, &flow);
	to_port(e, &flow, m);
}

static bool may_answer(struct cm_manager *cm, nanotime now)
{
	if (now >= cm->strays_at) {
		cm->strays_at = now + TIME_S;
		cm->strays = LIMIT_CM_STRAYS;
	}
	if (cm->strays == 0)
		return false;
	cm->strays--;
	return true;
}

/* Does not resolve the next hop, because any host may be the sender. */
void cm_answer(struct engine *e, const struct cm_input *in, const struct cm_message *m)
{
	const struct qp_path path = { .dgid = in->source,
				      .sgid = in->destination,
				      .traffic_class = in->traffic_class,
				      .hop_limit = CM_HOP_LIMIT };
	struct flow flow;

	if (!in->has_mac) {
		to_ourselves(e, &path, m);
		return;
	}
	if (e->port == NULL || !may_answer(e->control->cm, clock_now()))
		return;
	flow_make(e, &path, GSI_QPN, GSI_QPN, &in->mac, &flow);
	to_port(e, &flow, m);
}

/* ---- in ---- */

static void frame_in(struct engine *e, const struct rte_mbuf *b, nanotime now)
{
	const uint8_t *frame = rte_pktmbuf_mtod(b, const uint8_t *);
	/* The lcore has checked the ICRC. */
	struct decode_options options = { .vlan = e->vlan };
	struct cm_input in = { .has_mac = true };
	struct packet p;

	if (packet_decode(&p, frame, b->data_len, &options) != REASON_NONE)
		return;
	/*
	 * Spoofed, or not for this engine (protocol-map 5, 6): an answer would go to everybody, or
	 * to nobody.
	 */
	if (!gid_is_own(e, &p.dst_gid) || !cm_address_is_peer(e, &p.src_gid) ||
	    (frame[6] & MAC_GROUP) != 0)
		return;
	in.source = p.src_gid;
	in.destination = p.dst_gid;
	in.traffic_class = p.traffic_class;
	memcpy(in.mac.octet, frame + 6, sizeof(in.mac.octet));
	switch (cm_message_decode(&in.message, p.payload, p.payload_length)) {
	case CM_DECODED:
		cm_input(e, &in, now);
		break;
	case CM_WRONG_VERSION:
		cm_input_wrong_version(e, &in, now);
		break;
	case CM_NOT_CM:
	case CM_MALFORMED:
		break;
	}
}

static void establish(struct engine *e, uint32_t qpn, nanotime now)
{
	struct cm_link *l = cm_find_qpn(e, qpn);

	if (l != NULL && cm_establish(&l->core, now) == 0)
		cm_link_settle(e, l, now);
}

nanotime cm_mads_tick(struct engine *e, nanotime now)
{
	struct cm_manager *cm = e->control->cm;
	struct cm_queued *q;
	uint32_t left = LIMIT_CM_AT_ONCE;
	void *p;

	while (left > 0 && (q = queue_take(cm)) != NULL) {
		cm_input(e, &q->input, now);
		free(q);
		left--;
	}
	for (left = LIMIT_CM_AT_ONCE; left > 0 && pointer_take(e->mads, &p); left--) {
		frame_in(e, p, now);
		rte_pktmbuf_free(p);
	}
	for (left = LIMIT_CM_AT_ONCE; left > 0 && pointer_take(e->established, &p); left--)
		establish(e, (uint32_t)(uintptr_t)p, now);
	if (cm->queued > 0)
		return now;
	return control_has_more(e->mads) || control_has_more(e->established) ? now + CM_EVERY
									     : TIME_NEVER;
}
