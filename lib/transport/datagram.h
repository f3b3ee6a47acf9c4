/* SPDX-License-Identifier: BSD-3-Clause */
/* UD and RAW_PACKET: what of them is not as with connections. Private to lib/transport. */
#ifndef TRANSPORT_DATAGRAM_H
#define TRANSPORT_DATAGRAM_H

#include "transport/respond.h"

/* A request of that many octets: STATUS_SUCCESS, or how it fails in its turn. */
enum work_status datagram_check(const struct qp *qp, const struct send_work *w, uint64_t length);
/* How many packets a request is: one, or (TSO on UD) one a segment. */
uint32_t datagram_packets(const struct qp *qp, const struct send_work *w, const struct message *m);
/* UD: where a packet goes, beside its place in the message. */
void datagram_address(const struct qp *qp, const struct send_work *w, struct packet *p);
/* UD: the segment of a TSO request that `done` others precede, its header as it was given. */
enum reason datagram_segment(const struct qp *qp, const struct send_work *w,
			     const struct message *m, uint32_t done, const struct key_table *keys,
			     struct packet *p, struct span_list *gather);
/* RAW_PACKET: the frame that a request is. */
enum reason frame_packet(const struct qp *qp, const struct send_work *w, const struct message *m,
			 const struct key_table *keys, struct packet *p, struct span_list *gather);

/* UD: a packet that check_arrival let pass. */
enum reason datagram_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			      const struct key_table *keys, struct outcome *out);
/* RAW_PACKET: any frame. */
enum reason frame_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			   const struct key_table *keys, struct outcome *out);

#endif
