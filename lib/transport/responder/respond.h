/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request while the responder looks at it, and its effects. The responders of reliable and
 * unreliable connections share both.
 */
#ifndef TRANSPORT_RESPOND_H
#define TRANSPORT_RESPOND_H

#include <assert.h>

#include "base/bits.h"
#include "transport/outcomes.h"
#include "transport/qp.h"
#include "wire/opcode.h"

struct arrival {
	struct qp *qp;
	const struct packet *p;
	const struct opcode_info *op;
	const struct recv_work *offer;
	const struct key_table *keys;
	struct outcome *out;
	nanotime now;
	/* A repeated READ or atomic, once duplicate_check found it: its record. */
	struct record *record;
	uint32_t record_index;
};

/* The octets of this packet that go into memory. */
static inline uint32_t stored_length(const struct arrival *a)
{
	uint32_t n = a->p->payload_length;

	if (a->op->kind != KIND_SEND || !(a->op->flags & OP_FIRST))
		return n;
	assert(a->offer != NULL && "check_offer comes first");
	return n - MIN_OF(n, a->offer->strip);
}

/* A request from the peer of a reliable connection. */
enum reason respond_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			     const struct key_table *keys, nanotime now, struct outcome *out);
/* The request with this PSN came behind a gap and is kept. */
void respond_held(struct qp *qp, uint32_t psn);
/*
 * The expected PSN has passed the packet with this PSN. Something waits behind a gap (holding), or
 * for the time at which a gap is reported (nak_at), so there may be another gap now.
 */
void respond_passed(struct qp *qp, uint32_t psn, nanotime now);
/* The time to report a gap may have come. */
void respond_expired(struct qp *qp, nanotime now);

/* The request with this PSN is refused: to ERR, and a NAK is owed. */
void respond_failed(struct qp *qp, enum reason why, uint32_t psn, uint32_t msn);

/* A SEND or WRITE packet that passed every check. */
void respond_take_data(const struct arrival *a);
/* A READ, atomic, ATOMIC WRITE or FLUSH that passed: it is owed an answer, and remembered. */
void respond_take_fetching(struct qp *qp, const struct packet *p, const struct opcode_info *op,
			   struct outcome *out);

#endif
