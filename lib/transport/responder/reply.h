/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's sending half, as the rest of the core uses it. */
#ifndef TRANSPORT_REPLY_H
#define TRANSPORT_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/responder/responder.h"

struct key_table;
struct packet;
struct qp;
struct span_list;

/* READs or atomics may be owed their answers. */
static inline bool reply_has_records(const struct responder *r)
{
	return r->record_owed != r->record_head;
}

/* Cheap: whether anything is owed, ready or not. */
static inline bool reply_is_owed(const struct responder *r)
{
	return r->ack_due || reply_has_records(r) || r->nak != 0 || r->selection_due || r->cnp_due;
}

bool reply_ready(const struct qp *qp);
bool reply_next(struct qp *qp, const struct key_table *keys, struct packet *p,
		struct span_list *gather);
void reply_unsent(struct qp *qp, const struct packet *p);
void reply_fault(struct qp *qp, const struct packet *p);
void reply_forget(struct responder *r, uint32_t psn); /* what is owed for this PSN and behind */
void reply_abandon(struct responder *r); /* all of it */

/* record_owed to the oldest that is owed */
static inline void reply_forget_answered(struct responder *r)
{
	while (reply_has_records(r) && !record_at(r, r->record_owed)->owed)
		r->record_owed++;
}

#endif
