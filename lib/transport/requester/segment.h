/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are cut into segments on their way (TSO). */
#ifndef TRANSPORT_SEGMENT_H
#define TRANSPORT_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"

struct key_table;
struct message;
struct packet;
struct qp;
struct send_work;
struct span_list;

/* Whether a TSO request is malformed: its header has at least that many octets. */
bool segment_malformed(const struct qp *qp, const struct send_work *w, uint32_t least);
/* How many packets a request of UD or RAW_PACKET is: one, or (TSO on UD) one a segment. */
uint32_t segments_of(const struct qp *qp, const struct send_work *w, const struct message *m);
/* The header that stands before each segment, in front of the payload. */
void segment_header(const struct send_work *w, struct span_list *gather);
/* UD: the segment behind `done` others, its header as given. */
enum reason segment_packet(const struct qp *qp, const struct send_work *w, const struct message *m,
			   uint32_t done, const struct key_table *keys, struct packet *p,
			   struct span_list *gather);

#endif
