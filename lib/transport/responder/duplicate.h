/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeated READs and atomics. */
#ifndef TRANSPORT_DUPLICATE_H
#define TRANSPORT_DUPLICATE_H

#include "transport/responder/respond.h"

/* REASON_DUPLICATE, with the request's record in the arrival; or _UNKNOWN: no record matches. */
enum reason duplicate_check(struct arrival *a);
/* The request's answer is owed again, from where the repetition begins. */
void duplicate_owe(const struct arrival *a);

/* A part of a READ was sent, and there are more (rec->parts): the next one that was asked for is owed now. */
void duplicate_next_part(const struct qp *qp, struct record *rec);

#endif
