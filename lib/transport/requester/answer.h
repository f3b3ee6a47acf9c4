/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's receiving half. */
#ifndef TRANSPORT_ANSWER_H
#define TRANSPORT_ANSWER_H

#include "transport/outcomes.h"
#include "transport/requester/requester.h"

/* A response of the peer: ACK, NAK, READ response or ATOMIC ACK. */
enum reason answer_received(struct qp *qp, const struct packet *p, const struct key_table *keys,
			    nanotime now, struct outcome *out);

/* The number of the READ or atomic with this PSN, which is on its way. */
uint32_t answer_request(const struct requester *r, uint32_t psn);

/* A response that came ahead of others. */
bool answer_waits(const struct qp *qp, const struct packet *p);

#endif
