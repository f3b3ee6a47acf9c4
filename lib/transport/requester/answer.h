/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's receiving half. */
#ifndef TRANSPORT_ANSWER_H
#define TRANSPORT_ANSWER_H

#include "transport/outcomes.h"

/* A response of the peer: ACK, NAK, READ response or ATOMIC ACK. */
enum reason answer_received(struct qp *qp, const struct packet *p, const struct key_table *keys,
			    nanotime now, struct outcome *out);

/* A response that came ahead of others. */
bool answer_waits(const struct qp *qp, const struct packet *p);

#endif
