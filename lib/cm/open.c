/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a connection begins: REQ, REP, RTU (IBTA 12.9.6, 12.9.7).
 *
 * A peer that repeats its REQ or REP has not received the answer, so the answer is sent again. If
 * the program has not answered yet, the peer gets an MRA, so that it does not give up.
 */
#include "cm/state.h"

/*
 * Both ends take these times from the REQ: the peer's response time and the packets' flight time.
 */
static void adopt_times(struct cm_connection *c, const struct cm_message *req, uint8_t own_wait,
			uint8_t peer_wait)
{
	c->flight = cm_time(req->primary.ack_timeout);
	c->interval = cm_time(own_wait) + c->flight;
	c->peer_interval = cm_time(peer_wait) + c->flight;
	c->timewait = c->flight;
	c->max_retries = req->max_cm_retries;
	c->mra_timeout = LIMIT_CM_MRA_TIMEOUT;
}

static void adopt_peer(struct cm_connection *c, const struct cm_message *m)
{
	c->remote_id = m->local_id;
	c->remote_guid = m->ca_guid;
	c->remote_qpn = cm_sender_qpn(m);
	c->remote_psn = m->starting_psn;
	c->peer = *m;
}

/*
 * One side responds to what the other initiates, so each direction takes the lesser offer (IBTA
 * 12.7.29, 12.7.30).
 */
static void agree_depths(struct cm_connection *c, const struct cm_message *ours)
{
	c->initiator_depth = MIN_OF(ours->initiator_depth, c->peer.responder_resources);
	c->responder_resources = MIN_OF(ours->responder_resources, c->peer.initiator_depth);
}

/* ---- active ---- */

int cm_connect(struct cm_connection *c, const struct cm_message *req, nanotime now)
{
	if (c->state != CM_IDLE || req->attribute != CM_REQ || req->local_id == 0)
		return EINVAL;
	memset(c, 0, sizeof(*c));
	c->active = true;
	c->local_id = req->local_id;
	c->local_guid = req->ca_guid;
	c->local_qpn = req->qpn;
	c->transaction = req->transaction != 0 ? req->transaction : cm_transaction(c, CM_REQ);
	adopt_times(c, req, req->remote_response_timeout, req->local_response_timeout);
	c->sent = *req;
	c->sent.transaction = c->transaction;
	cm_await(c, CM_REQ_SENT, now);
	return 0;
}

static enum cm_verdict first_rep(struct cm_connection *c, const struct cm_message *rep,
				 nanotime now)
{
	uint16_t reason = cm_check_reply(rep);

	adopt_peer(c, rep);
	agree_depths(c, &c->sent);
	c->timewait = c->flight + cm_time(rep->target_ack_delay);
	if (reason != 0) {
		cm_reject(c, &(struct cm_rejection){ .reason = reason }, now);
		c->events |= CM_EVENT_UNREACHABLE;
		return CM_ACCEPTED;
	}
	cm_enter(c, CM_REP_RECEIVED);
	c->events |= CM_EVENT_REPLY;
	return CM_ACCEPTED;
}

enum cm_verdict cm_rep_received(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	if (!c->active || !cm_belongs(c, m))
		return CM_IGNORED;
	switch (c->state) {
	case CM_REQ_SENT:
		return first_rep(c, m, now);
	case CM_REP_RECEIVED:
		c->owed |= CM_OWES_MRA;
		return CM_REPEATED;
	case CM_ESTABLISHED: /* the RTU was lost */
		c->owed |= CM_OWES_MESSAGE;
		return CM_REPEATED;
	case CM_REJECTED:
		c->owed |= CM_OWES_MESSAGE;
		c->deadline = now + c->peer_interval;
		return CM_REPEATED;
	default:
		return CM_IGNORED;
	}
}

int cm_ready(struct cm_connection *c, const void *private_data, size_t length, nanotime now)
{
	if (c->state != CM_REP_RECEIVED ||
	    cm_compose_private(c, CM_RTU, c->transaction, private_data, length) != 0)
		return EINVAL;
	cm_enter(c, CM_ESTABLISHED);
	c->owed = CM_OWES_MESSAGE;
	return 0;
}

/* ---- passive ---- */

void cm_requested(struct cm_connection *c, const struct cm_message *req, uint32_t local_id)
{
	memset(c, 0, sizeof(*c));
	c->local_id = local_id;
	c->service_id = req->service_id;
	c->transaction = req->transaction;
	adopt_times(c, req, req->local_response_timeout, req->remote_response_timeout);
	adopt_peer(c, req);
	cm_enter(c, CM_REQ_RECEIVED);
	c->events = CM_EVENT_REQUEST;
}

/* The REP says whether an alternate path is accepted (IBTA 12.6.8). This side never accepts one. */
#define FAILOVER_NONE	     0u
#define FAILOVER_UNSUPPORTED 1u

static bool offers_alternate(const struct cm_message *req)
{
	static const struct gid zero;

	return req->alternate.local_lid != 0 || !gid_equal(&req->alternate.local_gid, &zero);
}

int cm_accept(struct cm_connection *c, const struct cm_message *rep, nanotime now)
{
	if (c->state != CM_REQ_RECEIVED)
		return EINVAL;
	c->local_qpn = rep->qpn;
	c->local_guid = rep->ca_guid;
	c->timewait = c->flight + cm_time(rep->target_ack_delay);
	agree_depths(c, rep);
	c->sent = *rep;
	c->sent.attribute = CM_REP;
	c->sent.transaction = c->transaction;
	c->sent.local_id = c->local_id;
	c->sent.remote_id = c->remote_id;
	c->sent.initiator_depth = c->initiator_depth;
	c->sent.responder_resources = c->responder_resources;
	if (c->peer.transport == CM_TRANSPORT_EXTENDED) { /* as on Linux: a target has an SRQ */
		c->sent.eecn = rep->qpn;
		c->sent.qpn = 0;
		c->sent.srq = 1;
	}
	c->sent.failover_accepted =
		offers_alternate(&c->peer) ? FAILOVER_UNSUPPORTED : FAILOVER_NONE;
	cm_await(c, CM_REP_SENT, now);
	return 0;
}

static enum cm_verdict req_again(struct cm_connection *c, nanotime now)
{
	switch (c->state) {
	case CM_REQ_RECEIVED:
		c->owed |= CM_OWES_MRA;
		break;
	case CM_REP_SENT:
	case CM_ESTABLISHED: /* data without an RTU has established it; the peer still waits */
		c->owed |= CM_OWES_MESSAGE;
		break;
	case CM_REJECTED:
		c->owed |= CM_OWES_MESSAGE;
		c->deadline = now + c->peer_interval;
		break;
	case CM_TIMEWAIT: /* the peer asks for a connection that has ended */
		c->owed |= CM_OWES_STALE;
		break;
	}
	return CM_REPEATED;
}

enum cm_verdict cm_req_received(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	return cm_belongs(c, m) ? req_again(c, now) : CM_IGNORED;
}

static void established(struct cm_connection *c)
{
	cm_enter(c, CM_ESTABLISHED);
	c->events |= CM_EVENT_ESTABLISHED;
}

enum cm_verdict cm_rtu_received(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	if (c->active || !cm_belongs(c, m))
		return CM_IGNORED;
	if (c->state == CM_ESTABLISHED)
		return CM_REPEATED;
	if (c->state != CM_REP_SENT)
		return CM_IGNORED;
	established(c);
	return CM_ACCEPTED;
}

int cm_establish(struct cm_connection *c, nanotime now)
{
	if (c->state == CM_ESTABLISHED)
		return EISCONN;
	if (c->state != CM_REP_SENT)
		return EINVAL;
	established(c);
	return 0;
}
