/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain case of sending: the questions of request.c, asked at once for nearly all packets. */
#ifndef TRANSPORT_PLAIN_H
#define TRANSPORT_PLAIN_H

#include <stdbool.h>

#include "base/time.h"

struct key_table;
struct packet;
struct qp;
struct span_list;

/*
 * The next request packet, if it is all of a SEND, a WRITE or a READ of one packet, or in the
 * middle of a longer SEND or WRITE, and nothing holds the queue pair back, limits its rate or is to
 * be sent again. False: another case, or it may not be sent; only *p and *gather have changed then,
 * and request.c finds out what to do.
 */
bool plain_next(struct qp *qp, const struct key_table *keys, nanotime now, struct packet *p,
		struct span_list *gather);

#endif
