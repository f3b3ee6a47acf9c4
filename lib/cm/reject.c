/* SPDX-License-Identifier: BSD-3-Clause */
/* Refusing and delaying: REJ (IBTA 12.6.7) and MRA (12.6.6). */
#include "cm/state.h"

/* ---- ours ---- */

void cm_compose_reject(struct cm_connection *c, uint16_t reason, uint8_t about)
{
	cm_compose(c, CM_REJ, c->transaction);
	c->sent.reason = reason;
	c->sent.about = about;
	c->owed |= CM_OWES_MESSAGE;
}

/*
 * A peer that has not told its id yet finds the connection by our id and our CA GUID, so this
 * reason carries the GUID as additional information (IBTA 12.6.7.2).
 */
void cm_reject_timeout(struct cm_connection *c)
{
	cm_compose_reject(c, CM_REJECT_TIMEOUT, CM_ABOUT_OTHER);
	store_be64(c->sent.information, c->local_guid);
	c->sent.information_length = sizeof(c->local_guid);
}

static uint8_t about(const struct cm_connection *c)
{
	switch (c->state) {
	case CM_REQ_RECEIVED:
		return CM_ABOUT_REQ;
	case CM_REQ_SENT: /* a REP that was refused on arrival, or no message */
		return c->peer.attribute == CM_REP ? CM_ABOUT_REP : CM_ABOUT_OTHER;
	case CM_REP_RECEIVED:
		return CM_ABOUT_REP;
	default:
		return CM_ABOUT_OTHER;
	}
}

/*
 * Enters the state after a REJ. If the peer might ask again, that is a state which can repeat the
 * REJ.
 */
static void enter_after_reject(struct cm_connection *c, nanotime now)
{
	if (c->state == CM_REP_SENT) {
		cm_enter_timewait(c, now);
	} else if (c->state == CM_REQ_SENT && c->peer.attribute != CM_REP) {
		cm_enter(c, CM_IDLE);
	} else {
		cm_enter(c, CM_REJECTED);
		c->deadline = now + c->peer_interval;
	}
}

int cm_reject(struct cm_connection *c, const struct cm_rejection *r, nanotime now)
{
	uint8_t what = about(c);

	if (c->state != CM_REQ_SENT && c->state != CM_REQ_RECEIVED && c->state != CM_REP_SENT &&
	    c->state != CM_REP_RECEIVED)
		return EINVAL;
	if (r->private_length > cm_private_size(CM_REJ) || r->information_length > MAD_ARI_MAX)
		return EINVAL;
	enter_after_reject(c, now);
	cm_compose_reject(c, r->reason, what);
	if (r->private_length != 0)
		memcpy(c->sent.private_data, r->private_data, r->private_length);
	if (r->information_length != 0)
		memcpy(c->sent.information, r->information, r->information_length);
	c->sent.information_length = (uint8_t)r->information_length;
	return 0;
}

int cm_delay(struct cm_connection *c, uint8_t service_timeout, nanotime now)
{
	if ((c->state != CM_REQ_RECEIVED && c->state != CM_REP_RECEIVED) || service_timeout > 31)
		return EINVAL;
	c->mra_timeout = service_timeout;
	c->owed |= CM_OWES_MRA;
	return 0;
}

/* ---- the peer's ---- */

static void rejected(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	/* the peer knows our queue pair from an older connection, so this number must rest, too */
	if (m->reason == CM_REJECT_STALE || c->state == CM_REP_RECEIVED)
		cm_enter_timewait(c, now);
	else
		cm_enter(c, CM_IDLE);
	c->peer = *m;
	c->events |= CM_EVENT_REJECTED;
}

enum cm_verdict cm_rej_received(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	if (!cm_belongs(c, m))
		return CM_IGNORED;
	switch (c->state) {
	case CM_REQ_SENT:
	case CM_REQ_RECEIVED:
	case CM_REP_SENT:
	case CM_REP_RECEIVED:
		rejected(c, m, now);
		return CM_ACCEPTED;
	case CM_ESTABLISHED: /* the peer got no RTU, or has lost the connection */
	case CM_DREQ_SENT:
		cm_enter_timewait(c, now);
		c->events |= CM_EVENT_DISCONNECTED;
		return CM_ACCEPTED;
	default:
		return CM_IGNORED;
	}
}

/*
 * The peer needs more time. Each of our repetitions can be extended once, so a peer that keeps
 * sending MRAs delays the end only as long as our repetitions last.
 */
enum cm_verdict cm_mra_received(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	uint8_t awaited = c->state == CM_REP_SENT ? CM_ABOUT_REP : CM_ABOUT_REQ;

	if ((c->state != CM_REQ_SENT && c->state != CM_REP_SENT) || m->about != awaited ||
	    !cm_belongs(c, m))
		return CM_IGNORED;
	if (c->extended)
		return CM_REPEATED;
	c->extended = true;
	c->owed &= (uint16_t)~CM_OWES_MESSAGE;
	c->deadline = MAX_OF(c->deadline, now + cm_time(m->service_timeout) + c->flight);
	return CM_ACCEPTED;
}
