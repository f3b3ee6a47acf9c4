/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by all states of a connection: messages in and out, events, time. */
#include "cm/state.h"

static const struct {
	const char *name;
	bool repeats; /* `sent` is repeated until it is answered */
} states[CM_STATES] = {
	[CM_IDLE] = { "IDLE" },
	[CM_REQ_SENT] = { "REQ_SENT", true },
	[CM_REQ_RECEIVED] = { "REQ_RECEIVED" },
	[CM_REP_SENT] = { "REP_SENT", true },
	[CM_REP_RECEIVED] = { "REP_RECEIVED" },
	[CM_ESTABLISHED] = { "ESTABLISHED" },
	[CM_DREQ_SENT] = { "DREQ_SENT", true },
	[CM_DREQ_RECEIVED] = { "DREQ_RECEIVED" },
	[CM_TIMEWAIT] = { "TIMEWAIT" },
	[CM_REJECTED] = { "REJECTED" },
	[CM_SIDR_REQ_SENT] = { "SIDR_REQ_SENT", true },
	[CM_SIDR_REQ_RECEIVED] = { "SIDR_REQ_RECEIVED" },
	[CM_SIDR_REPLIED] = { "SIDR_REPLIED" },
};

typedef enum cm_verdict (*receiver)(struct cm_connection *c, const struct cm_message *m,
				    nanotime now);

/* An APR is an answer to a LAP, and this side sends no LAPs. */
static const receiver receivers[] = {
	[CM_REQ - CM_REQ] = cm_req_received,
	[CM_MRA - CM_REQ] = cm_mra_received,
	[CM_REJ - CM_REQ] = cm_rej_received,
	[CM_REP - CM_REQ] = cm_rep_received,
	[CM_RTU - CM_REQ] = cm_rtu_received,
	[CM_DREQ - CM_REQ] = cm_dreq_received,
	[CM_DREP - CM_REQ] = cm_drep_received,
	[CM_SIDR_REQ - CM_REQ] = cm_sidr_req_received,
	[CM_SIDR_REP - CM_REQ] = cm_sidr_rep_received,
	[CM_LAP - CM_REQ] = cm_lap_received,
	[CM_APR - CM_REQ] = NULL,
};

nanotime cm_time(uint8_t exponent)
{
	return UINT64_C(4096) << MIN_OF(MAX_OF(exponent, LIMIT_CM_EXPONENT_MIN), LIMIT_CM_EXPONENT);
}

enum cm_state cm_state(const struct cm_connection *c)
{
	return c->state;
}

const char *cm_state_name(enum cm_state state)
{
	return (unsigned int)state < CM_STATES ? states[state].name : "?";
}

const struct cm_message *cm_peer_message(const struct cm_connection *c)
{
	return &c->peer;
}

uint32_t cm_take_events(struct cm_connection *c)
{
	uint32_t events = c->abandoned ? 0 : c->events;

	c->events = 0;
	return events;
}

enum cm_verdict cm_received(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	uint32_t at = (uint32_t)m->attribute - CM_REQ;

	if (c->state == CM_IDLE || at >= ARRAY_SIZE(receivers) || receivers[at] == NULL)
		return CM_IGNORED;
	return receivers[at](c, m, now);
}

bool cm_awaits(const struct cm_connection *c)
{
	return states[c->state].repeats;
}

nanotime cm_deadline(const struct cm_connection *c)
{
	return c->deadline == 0 ? TIME_NEVER : c->deadline;
}

/* Called when the last repetition was not answered (IBTA 12.9.8.5). */
static void give_up(struct cm_connection *c, nanotime now)
{
	switch (c->state) {
	case CM_REQ_SENT:
		cm_enter(c, CM_IDLE);
		cm_reject_timeout(c);
		c->events |= CM_EVENT_UNREACHABLE;
		break;
	case CM_REP_SENT: /* the peer may be established and send data */
		cm_enter_timewait(c, now);
		cm_reject_timeout(c);
		c->events |= CM_EVENT_UNREACHABLE;
		break;
	case CM_DREQ_SENT:
		cm_enter_timewait(c, now);
		c->events |= CM_EVENT_DISCONNECT_TIMEOUT;
		break;
	case CM_SIDR_REQ_SENT:
		cm_enter(c, CM_IDLE);
		c->events |= CM_EVENT_UNREACHABLE;
		break;
	}
}

static void rest_is_over(struct cm_connection *c)
{
	if (c->state == CM_TIMEWAIT)
		c->events |= CM_EVENT_TIMEWAIT_EXIT;
	if (c->state == CM_SIDR_REPLIED && !c->abandoned)
		c->deadline = 0; /* lasts until the program destroys its id */
	else
		cm_enter(c, CM_IDLE);
}

void cm_expired(struct cm_connection *c, nanotime now)
{
	if (now < cm_deadline(c))
		return;
	if (!states[c->state].repeats) {
		rest_is_over(c);
	} else if (c->retries == 0) {
		give_up(c, now);
	} else {
		c->retries--;
		c->extended = false;
		c->owed |= CM_OWES_MESSAGE;
		c->deadline = now + c->interval;
	}
}

/* An answer without private data. */
static struct cm_message answer(const struct cm_connection *c, uint8_t attribute,
				uint64_t transaction)
{
	struct cm_message m = { .attribute = attribute };

	m.transaction = transaction;
	m.local_id = c->local_id;
	m.remote_id = c->remote_id;
	return m;
}

static void pay(struct cm_connection *c, enum cm_debt debt, struct cm_message *out)
{
	switch (debt) {
	case CM_OWES_APR:
		*out = answer(c, CM_APR, c->asked);
		out->status = CM_APR_UNSUPPORTED;
		break;
	case CM_OWES_MRA:
		*out = answer(c, CM_MRA, c->transaction);
		out->about = c->active ? CM_ABOUT_REP : CM_ABOUT_REQ;
		out->service_timeout = c->mra_timeout;
		break;
	case CM_OWES_DREP:
		*out = answer(c, CM_DREP, c->asked);
		break;
	case CM_OWES_STALE:
		*out = answer(c, CM_REJ, c->transaction);
		out->about = CM_ABOUT_REQ;
		out->reason = CM_REJECT_STALE;
		break;
	case CM_OWES_MESSAGE:
		*out = c->sent;
		break;
	}
}

bool cm_take_message(struct cm_connection *c, struct cm_message *out)
{
	uint32_t debt = c->owed & -(uint32_t)c->owed; /* the lowest bit: enum cm_debt's order */

	if (debt == 0)
		return false;
	c->owed &= (uint16_t)~debt;
	pay(c, (enum cm_debt)debt, out);
	return true;
}
