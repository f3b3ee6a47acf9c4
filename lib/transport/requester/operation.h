/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that stay at home, as the requester uses them. */
#ifndef TRANSPORT_OPERATION_H
#define TRANSPORT_OPERATION_H

#include "transport/outcomes.h"

bool operation_may_begin(const struct qp *qp);
/* The oldest request, just begun, is an operation. */
enum next_packet operation_next(struct qp *qp, const struct key_table *keys);
void operation_abandon(struct qp *qp); /* its report is awaited, and ignored */

#endif
