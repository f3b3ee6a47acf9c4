/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the responders of reliable and unreliable connections have in common: the checks that do
 * not depend on how a failed one is answered, and the taking of data. Private to lib/transport.
 */
#ifndef TRANSPORT_RESPOND_H
#define TRANSPORT_RESPOND_H

#include "transport/outcomes.h"
#include "transport/qp.h"

/* One request while it is looked at. */
struct arrival {
	struct qp *qp;
	const struct packet *p;
	const struct opcode_info *op;
	const struct recv_work *offer;
	const struct key_table *keys;
	struct outcome *out;
};

/* A request of the peer of a reliable connection. */
enum reason respond_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			     const struct key_table *keys, struct outcome *out);
/* The request with this PSN is refused: to ERR, and a NAK is owed. */
void respond_failed(struct qp *qp, enum reason why, uint32_t psn, uint32_t msn);

/* duplicate.c */
enum reason duplicate_received(struct qp *qp, const struct packet *p);

enum reason respond_check_access(const struct arrival *a);
enum reason respond_check_length(const struct arrival *a);
enum reason respond_check_key(const struct arrival *a);
/* A SEND or WRITE packet that passed every check. */
void respond_take_data(const struct arrival *a);

/* A receive request that is needed: is there one, and is it as it should be? */
static inline enum reason check_offer(const struct qp *qp, const struct recv_work *offer)
{
	if (offer == NULL)
		return REASON_RECEIVE_NOT_READY;
	return offer->num_sge <= qp->caps.max_recv_sge ? REASON_NONE : REASON_WORK_MALFORMED;
}

/* Octets that a receive request has room for. */
uint64_t receive_length(const struct recv_work *w);

#endif
