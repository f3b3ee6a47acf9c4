/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connection a message is for, and the answer if there is none. */
#include "cm/state.h"

static const struct cm_key_of none = { CM_KEY_NONE, 0, 0 };

static struct cm_key_of rej_key(const struct cm_message *m)
{
	if (m->remote_id != 0)
		return (struct cm_key_of){ CM_KEY_LOCAL_ID, m->remote_id, 0 };
	if (m->reason == CM_REJECT_TIMEOUT && m->information_length >= sizeof(uint64_t))
		return (struct cm_key_of){ CM_KEY_REMOTE_ID, m->local_id,
					   load_be64(m->information) };
	return none;
}

struct cm_key_of cm_key(const struct cm_message *m)
{
	switch (m->attribute) {
	case CM_REQ:
		return (struct cm_key_of){ CM_KEY_REMOTE_ID, m->local_id, m->ca_guid };
	case CM_REJ:
		return rej_key(m);
	case CM_SIDR_REQ:
		return (struct cm_key_of){ CM_KEY_SIDR_RESPONDER, m->local_id, 0 };
	case CM_SIDR_REP:
		return (struct cm_key_of){ CM_KEY_SIDR_REQUESTER, m->local_id, 0 };
	default:
		return m->remote_id == 0 || cm_private_size(m->attribute) == 0
			       ? none
			       : (struct cm_key_of){ CM_KEY_LOCAL_ID, m->remote_id, 0 };
	}
}

static bool has_peer(const struct cm_connection *c)
{
	return c->state != CM_IDLE && c->state != CM_REQ_SENT && c->state < CM_SIDR_REQ_SENT;
}

/*
 * Whether the REQ is a repetition of this connection's REQ. Otherwise it is a new one with the same
 * id, because the peer has restarted.
 */
static bool same_req(const struct cm_connection *c, const struct cm_message *m)
{
	return !c->active && m->attribute == CM_REQ && m->local_id == c->remote_id &&
	       m->qpn == c->remote_qpn && m->starting_psn == c->remote_psn &&
	       m->service_id == c->service_id;
}

static bool same_rep(const struct cm_connection *c, const struct cm_message *m)
{
	return c->active && m->attribute == CM_REP && m->local_id == c->remote_id &&
	       m->remote_id == c->local_id;
}

enum cm_relation cm_compare(const struct cm_connection *c, const struct cm_message *m)
{
	if (!has_peer(c) || m->ca_guid != c->remote_guid)
		return CM_UNRELATED;
	if (same_req(c, m) || same_rep(c, m))
		return CM_REPETITION;
	/* a rejected request never became a connection, so its queue pair may try again */
	if (c->state == CM_REJECTED)
		return CM_UNRELATED;
	return m->local_id == c->remote_id || cm_sender_qpn(m) == c->remote_qpn ? CM_STALE
										: CM_UNRELATED;
}

/* Whether the message names both ends. That is possible once both are known. */
static bool names_us(const struct cm_connection *c, const struct cm_message *m)
{
	if (c->state == CM_IDLE || c->state >= CM_SIDR_REQ_SENT || m->remote_id != c->local_id)
		return false;
	return c->state == CM_REQ_SENT || m->local_id == c->remote_id;
}

/* A peer that gave up before it learned our id identifies itself instead. */
static bool names_the_peer(const struct cm_connection *c, const struct cm_message *m)
{
	struct cm_key_of key = cm_key(m);

	return key.by == CM_KEY_REMOTE_ID && has_peer(c) && key.id == c->remote_id &&
	       key.guid == c->remote_guid;
}

bool cm_belongs(const struct cm_connection *c, const struct cm_message *m)
{
	switch (m->attribute) {
	case CM_REQ:
		return cm_compare(c, m) == CM_REPETITION;
	case CM_REJ:
		return names_us(c, m) || names_the_peer(c, m);
	case CM_SIDR_REQ:
		return cm_sidr_compare(c, m) == CM_REPETITION;
	case CM_SIDR_REP:
		return c->state == CM_SIDR_REQ_SENT && m->local_id == c->local_id;
	default:
		return names_us(c, m);
	}
}

static void swap_ids(const struct cm_message *m, uint8_t attribute, struct cm_message *answer)
{
	memset(answer, 0, sizeof(*answer));
	answer->attribute = attribute;
	answer->transaction = m->transaction;
	answer->local_id = m->remote_id;
	answer->remote_id = m->local_id;
}

static uint8_t sidr_status(uint16_t reason)
{
	switch (reason) {
	case CM_REJECT_INVALID_SERVICE_ID:
		return CM_SIDR_UNSUPPORTED_SERVICE;
	case CM_REJECT_NO_QP:
		return CM_SIDR_NO_QP;
	case CM_REJECT_CLASS_VERSION:
		return CM_SIDR_UNSUPPORTED_VERSION;
	default:
		return CM_SIDR_REJECTED;
	}
}

void cm_refuse(const struct cm_message *m, uint16_t reason, struct cm_message *answer)
{
	if (m->attribute == CM_SIDR_REQ) {
		swap_ids(m, CM_SIDR_REP, answer);
		answer->local_id = m->local_id;
		answer->service_id = m->service_id;
		answer->status = sidr_status(reason);
		return;
	}
	swap_ids(m, CM_REJ, answer);
	answer->about = m->attribute == CM_REP ? CM_ABOUT_REP : CM_ABOUT_REQ;
	answer->reason = reason;
}

bool cm_stray(const struct cm_message *m, struct cm_message *answer)
{
	switch (m->attribute) {
	case CM_REQ:
	case CM_SIDR_REQ:
		cm_refuse(m, CM_REJECT_INVALID_SERVICE_ID, answer);
		return true;
	case CM_REP:
		cm_refuse(m, CM_REJECT_INVALID_COMM_ID, answer);
		return true;
	case CM_DREQ: /* our connection is long gone: let the peer's end, too */
		swap_ids(m, CM_DREP, answer);
		return true;
	case CM_LAP:
		swap_ids(m, CM_APR, answer);
		answer->status = CM_APR_INVALID_COMM_ID;
		return true;
	default:
		return false;
	}
}

/*
 * Answers only a REQ, REP or SIDR_REQ. Of a message in another version only the sender's id is
 * known.
 */
bool cm_wrong_version(const struct cm_message *m, struct cm_message *answer)
{
	if (m->attribute != CM_REQ && m->attribute != CM_REP && m->attribute != CM_SIDR_REQ)
		return false;
	cm_refuse(m, CM_REJECT_CLASS_VERSION, answer);
	return true;
}
