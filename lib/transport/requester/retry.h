/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's timers and retries: what is reported to them. */
#ifndef TRANSPORT_RETRY_H
#define TRANSPORT_RETRY_H

#include <stdint.h>

#include "base/time.h"

struct qp;

void retry_reset(struct qp *qp);
void retry_started(struct qp *qp, nanotime now); /* a packet was made */
void retry_held_back(struct qp *qp, nanotime now); /* ... and did not leave */
void retry_progress(struct qp *qp, nanotime now); /* something was acknowledged */
void retry_go_back(struct qp *qp); /* to the oldest unacknowledged packet */
void retry_gap(struct qp *qp, nanotime now); /* the peer misses the oldest unacknowledged packet */
nanotime rnr_time(uint8_t code); /* IBTA table 45: what a timer code means */
void retry_not_ready(struct qp *qp, uint8_t code, nanotime now); /* RNR NAK with this timer code */
void retry_expired(struct qp *qp, nanotime now); /* the timer fires if it is due */

#endif
