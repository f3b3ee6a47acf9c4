/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a connection ends: DREQ, DREP, and the time in which its ids are not reused (IBTA 12.9.8.4).
 * Both ends enter TIMEWAIT. DREQs that cross are answered and end both sides.
 */
#include "cm/state.h"

int cm_disconnect(struct cm_connection *c, const void *private_data, size_t length, nanotime now)
{
	switch (c->state) {
	case CM_ESTABLISHED:
		if (cm_compose_private(c, CM_DREQ, cm_transaction(c, CM_DREQ), private_data,
				       length) != 0)
			return EINVAL;
		c->sent.qpn = c->remote_qpn;
		cm_await(c, CM_DREQ_SENT, now);
		return 0;
	case CM_DREQ_RECEIVED:
		if (cm_compose_private(c, CM_DREP, c->asked, private_data, length) != 0)
			return EINVAL;
		cm_enter_timewait(c, now);
		c->owed = CM_OWES_MESSAGE;
		return 0;
	default:
		return EINVAL;
	}
}

/* Repeats our DREP, with the program's private data if it was our last message. */
static void repeat_drep(struct cm_connection *c)
{
	c->owed |= c->sent.attribute == CM_DREP ? CM_OWES_MESSAGE : CM_OWES_DREP;
}

enum cm_verdict cm_dreq_received(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	if (c->state == CM_REQ_SENT || !cm_belongs(c, m) || m->qpn != c->local_qpn)
		return CM_IGNORED;
	c->asked = m->transaction;
	switch (c->state) {
	case CM_REP_SENT: /* the RTU was lost */
	case CM_REP_RECEIVED: /* our data arrived before our RTU */
	case CM_ESTABLISHED:
		cm_enter(c, CM_DREQ_RECEIVED);
		c->events |= CM_EVENT_DISCONNECTED;
		return CM_ACCEPTED;
	case CM_DREQ_SENT: /* the DREQs cross */
		cm_enter_timewait(c, now);
		c->owed = CM_OWES_DREP;
		c->events |= CM_EVENT_DISCONNECTED;
		return CM_ACCEPTED;
	case CM_DREQ_RECEIVED:
		return CM_REPEATED;
	case CM_TIMEWAIT:
		repeat_drep(c);
		return CM_REPEATED;
	default:
		return CM_IGNORED;
	}
}

enum cm_verdict cm_drep_received(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	if (c->state != CM_DREQ_SENT || !cm_belongs(c, m))
		return CM_IGNORED;
	cm_enter_timewait(c, now);
	c->events |= CM_EVENT_DISCONNECTED;
	return CM_ACCEPTED;
}

void cm_forget(struct cm_connection *c)
{
	if (c->state == CM_REJECTED)
		cm_enter(c, CM_IDLE);
}

void cm_abandon(struct cm_connection *c, nanotime now)
{
	const struct cm_rejection no = { .reason = CM_REJECT_CONSUMER };

	c->abandoned = true;
	switch (c->state) {
	case CM_REQ_SENT: /* the peer looks it up by our id: we do not know its id yet */
		cm_enter(c, CM_IDLE);
		cm_reject_timeout(c);
		break;
	case CM_REQ_RECEIVED:
	case CM_REP_SENT:
	case CM_REP_RECEIVED:
		cm_reject(c, &no, now);
		break;
	case CM_ESTABLISHED:
	case CM_DREQ_RECEIVED:
		cm_disconnect(c, NULL, 0, now);
		break;
	case CM_SIDR_REQ_SENT:
		cm_enter(c, CM_IDLE);
		break;
	case CM_SIDR_REQ_RECEIVED:
		cm_sidr_reply(c, &(struct cm_message){ .status = CM_SIDR_REJECTED }, now);
		break;
	case CM_SIDR_REPLIED:
		if (c->deadline == 0)
			cm_enter(c, CM_IDLE);
		break;
	}
}
