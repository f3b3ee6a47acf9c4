/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's sending half, as the rest of the core uses it. */
#ifndef TRANSPORT_REQUEST_H
#define TRANSPORT_REQUEST_H

#include "transport/outcomes.h"

struct qp;

bool request_ready(const struct qp *qp);
enum next_packet request_next(struct qp *qp, const struct key_table *keys, nanotime now,
			      struct packet *p, struct span_list *gather, nanotime *not_before);
void request_unsent(struct qp *qp, const struct packet *p, nanotime now);

/* The cursor goes to the first packet that is lost, or to the next new one. */
void request_resume(struct qp *qp);

/* The oldest request fails if it cannot be sent and all before it is done. */
void request_fail_in_turn(struct qp *qp);
/* This request fails now, and with it the send queue or the queue pair. */
void request_failed(struct qp *qp, uint32_t index, enum work_status status, enum reason why);
/* The memory of the packet with this PSN is missing: its request fails in its turn. */
void request_fault(struct qp *qp, uint32_t psn, enum reason why);
/* As above, with another status than a memory fault's. */
void request_refuse(struct qp *qp, uint32_t psn, enum work_status status, enum reason why);

/*
 * If something holds back the packet that would ask for an acknowledgement, the last one in flight
 * is sent again, and asks.
 */
void request_ask(struct qp *qp);

bool qp_drained(const struct qp *qp); /* nothing that was begun is in flight */
void request_drained(struct qp *qp); /* raises SQ_DRAINED when it is due */

#endif
