/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of the state machine; private to lib/cm. */
#ifndef CM_STATE_H
#define CM_STATE_H

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "cm/cm.h"

/* Enters a state that waits for no message. Messages still owed are dropped. */
static inline void cm_enter(struct cm_connection *c, enum cm_state state)
{
	c->state = (uint8_t)state;
	c->owed = 0;
	c->extended = false;
	c->deadline = 0;
}

/* Sends `sent` and waits for its answer. */
static inline void cm_await(struct cm_connection *c, enum cm_state state, nanotime now)
{
	cm_enter(c, state);
	c->owed = CM_OWES_MESSAGE;
	c->retries = c->max_retries;
	c->deadline = now + c->interval;
}

static inline void cm_enter_timewait(struct cm_connection *c, nanotime now)
{
	cm_enter(c, CM_TIMEWAIT);
	c->deadline = now + c->timewait;
}

/* Makes `sent` a message of this connection without private data. */
static inline void cm_compose(struct cm_connection *c, uint8_t attribute, uint64_t transaction)
{
	memset(&c->sent, 0, sizeof(c->sent));
	c->sent.attribute = attribute;
	c->sent.transaction = transaction;
	c->sent.local_id = c->local_id;
	c->sent.remote_id = c->remote_id;
}

/* The same with private data. EINVAL: too long for the attribute; then `sent` is unchanged. */
static inline int cm_compose_private(struct cm_connection *c, uint8_t attribute,
				     uint64_t transaction, const void *data, size_t length)
{
	if (length > cm_private_size(attribute))
		return EINVAL;
	cm_compose(c, attribute, transaction);
	if (length != 0)
		memcpy(c->sent.private_data, data, length);
	return 0;
}

/* Transaction ids of our own messages: unique by connection and attribute. */
static inline uint64_t cm_transaction(const struct cm_connection *c, uint8_t attribute)
{
	return (uint64_t)attribute << 32 | c->local_id;
}

/* reject.c: gives up on an answer. The caller sets the event. */
void cm_reject_timeout(struct cm_connection *c);
/* reject.c: refuses the peer's message. The caller enters the new state first. */
void cm_compose_reject(struct cm_connection *c, uint16_t reason, uint8_t about);

/* One handler for each message. */
enum cm_verdict cm_req_received(struct cm_connection *c, const struct cm_message *m, nanotime now);
enum cm_verdict cm_rep_received(struct cm_connection *c, const struct cm_message *m, nanotime now);
enum cm_verdict cm_rtu_received(struct cm_connection *c, const struct cm_message *m, nanotime now);
enum cm_verdict cm_mra_received(struct cm_connection *c, const struct cm_message *m, nanotime now);
enum cm_verdict cm_rej_received(struct cm_connection *c, const struct cm_message *m, nanotime now);
enum cm_verdict cm_dreq_received(struct cm_connection *c, const struct cm_message *m, nanotime now);
enum cm_verdict cm_drep_received(struct cm_connection *c, const struct cm_message *m, nanotime now);
enum cm_verdict cm_lap_received(struct cm_connection *c, const struct cm_message *m, nanotime now);
enum cm_verdict cm_sidr_req_received(struct cm_connection *c, const struct cm_message *m,
				     nanotime now);
enum cm_verdict cm_sidr_rep_received(struct cm_connection *c, const struct cm_message *m,
				     nanotime now);

#endif
