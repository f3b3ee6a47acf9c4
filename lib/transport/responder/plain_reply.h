/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nearly all replies are alike: all of a READ, in one packet. The checks and effects are those of
 * reply.c for such a reply. Inline, too (plain.h).
 */
#ifndef TRANSPORT_PLAIN_REPLY_H
#define TRANSPORT_PLAIN_REPLY_H

#include <assert.h>

#include "memory/spans.h"
#include "transport/qp.h"
#include "transport/requester/kind.h"
#include "transport/responder/reply.h"
#include "wire/opcode.h"

/*
 * Everything that was asked for leaves in one packet from the READ's first PSN on, and the copies
 * before it are in place. Only answers to READs have octets.
 */
static inline bool plain_reply_is_next(const struct qp *qp, const struct record *rec)
{
	return rec->owed && rec->reply_length - 1 < qp->mtu && rec->replied == 0 &&
	       rec->parts == 0 && rec->reply_psn == rec->psn && qp->tickets.settled >= rec->ticket;
}

static inline void plain_reply_fill(const struct qp *qp, const struct record *rec, struct packet *p)
{
	p->opcode = OPCODE(qp->service, OPB_READ_RESPONSE_ONLY);
	p->syndrome = SYNDROME_ACK_NO_CREDITS;
	p->psn = rec->psn;
	p->msn = rec->msn;
	p->payload_length = rec->reply_length;
	p->pad = (uint8_t)(-rec->reply_length & 3);
}

/* The response acknowledges what came before it. */
static inline void plain_reply_acknowledges(struct responder *r, uint32_t psn)
{
	if (r->ack_due && psn_after(psn, r->ack_due_psn))
		r->ack_due = false;
	if (psn_after(psn, r->acked_psn))
		r->acked_psn = psn;
}

/* False: the next reply is another one, or must wait; nothing has changed then. reply_next() makes it. */
static inline bool plain_reply(struct qp *qp, const struct key_table *keys, struct packet *p,
			       struct span_list *gather)
{
	struct responder *r = &qp->resp;
	struct record *rec;
	struct key_user user;

	if (r->cnp_due || !reply_has_records(r))
		return false;
	rec = record_at(r, r->record_owed);
	if (!plain_reply_is_next(qp, rec))
		return false;
	user = (struct key_user){ .pd = rec->pd, .qpn = qp->qpn };
	if (!key_one_span(keys, rec->rkey, user, ACCESS_REMOTE_READ, rec->reply_va,
			  rec->reply_length, gather))
		return false;
	assert(rec->kind == KIND_READ_REQUEST && "no other answer has octets");
	plain_reply_fill(qp, rec, p);
	rec->replied = 1;
	rec->owed = false;
	reply_forget_answered(r);
	plain_reply_acknowledges(r, p->psn);
	return true;
}

#endif
