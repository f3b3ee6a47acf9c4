/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the queue pair of a datagram service: SIDR_REQ, SIDR_REP (IBTA 12.11). */
#include "cm/state.h"

int cm_sidr_connect(struct cm_connection *c, const struct cm_message *sidr_req,
		    uint8_t response_timeout, uint8_t retries, nanotime now)
{
	if (c->state != CM_IDLE || sidr_req->attribute != CM_SIDR_REQ || sidr_req->local_id == 0)
		return EINVAL;
	memset(c, 0, sizeof(*c));
	c->local_id = sidr_req->local_id;
	c->interval = cm_time(response_timeout);
	c->max_retries = retries;
	c->sent = *sidr_req;
	if (c->sent.transaction == 0)
		c->sent.transaction = cm_transaction(c, CM_SIDR_REQ);
	cm_await(c, CM_SIDR_REQ_SENT, now);
	return 0;
}

enum cm_verdict cm_sidr_rep_received(struct cm_connection *c, const struct cm_message *m,
				     nanotime now)
{
	if (!cm_belongs(c, m))
		return CM_IGNORED;
	cm_enter(c, CM_IDLE);
	c->peer = *m;
	c->events |= CM_EVENT_SIDR_REPLY;
	return CM_ACCEPTED;
}

void cm_sidr_requested(struct cm_connection *c, const struct cm_message *sidr_req)
{
	memset(c, 0, sizeof(*c));
	c->remote_id = sidr_req->local_id;
	c->service_id = sidr_req->service_id;
	c->transaction = sidr_req->transaction;
	c->peer = *sidr_req;
	cm_enter(c, CM_SIDR_REQ_RECEIVED);
	c->events = CM_EVENT_REQUEST;
}

int cm_sidr_reply(struct cm_connection *c, const struct cm_message *rep, nanotime now)
{
	if (c->state != CM_SIDR_REQ_RECEIVED || rep->information_length > MAD_ARI_MAX)
		return EINVAL;
	c->sent = *rep;
	c->sent.attribute = CM_SIDR_REP;
	c->sent.transaction = c->transaction;
	c->sent.local_id = c->remote_id; /* the request id, which the requester chose */
	c->sent.service_id = c->service_id;
	cm_enter(c, CM_SIDR_REPLIED);
	c->owed = CM_OWES_MESSAGE;
	c->deadline = now + LIMIT_CM_SIDR_LINGER;
	return 0;
}

enum cm_relation cm_sidr_compare(const struct cm_connection *c, const struct cm_message *m)
{
	return (c->state == CM_SIDR_REQ_RECEIVED || c->state == CM_SIDR_REPLIED) &&
			       m->local_id == c->remote_id && m->service_id == c->service_id
		       ? CM_REPETITION
		       : CM_UNRELATED;
}

enum cm_verdict cm_sidr_req_received(struct cm_connection *c, const struct cm_message *m,
				     nanotime now)
{
	if (!cm_belongs(c, m))
		return CM_IGNORED;
	if (c->state == CM_SIDR_REPLIED)
		c->owed |= CM_OWES_MESSAGE;
	return CM_REPEATED;
}
