/* SPDX-License-Identifier: BSD-3-Clause */
/* RAW_PACKET. */
#ifndef TRANSPORT_FRAME_H
#define TRANSPORT_FRAME_H

#include "base/reason.h"

struct key_table;
struct message;
struct outcome;
struct packet;
struct qp;
struct recv_work;
struct send_work;
struct span_list;

/* The frame of a request. */
enum reason frame_packet(const struct qp *qp, const struct send_work *w, const struct message *m,
			 const struct key_table *keys, struct packet *p, struct span_list *gather);
/* Any frame. */
enum reason frame_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			   const struct key_table *keys, struct outcome *out);

#endif
