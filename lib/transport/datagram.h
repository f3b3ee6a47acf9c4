/* SPDX-License-Identifier: BSD-3-Clause */
/* UD. */
#ifndef TRANSPORT_DATAGRAM_H
#define TRANSPORT_DATAGRAM_H

#include "base/reason.h"

struct key_table;
struct outcome;
struct packet;
struct qp;
struct recv_work;
struct send_work;

/* Where a packet of this request goes. */
void datagram_address(const struct qp *qp, const struct send_work *w, struct packet *p);
/* A packet that passed check_arrival. */
enum reason datagram_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			      const struct key_table *keys, struct outcome *out);

#endif
