/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of a request. */
#ifndef TRANSPORT_REQUEST_PACKET_H
#define TRANSPORT_REQUEST_PACKET_H

#include <stdint.h>

#include "base/reason.h"

struct key_table;
struct message;
struct packet;
struct qp;
struct span_list;

/* PSNs that the next READ request of message nxt, `done` packets into it, asks for. */
uint32_t request_read_part(const struct qp *qp, const struct message *m, uint32_t done);

/*
 * The packet `done` packets into message nxt, and how many PSNs it takes. Else why there is none:
 * the request's memory is not there.
 */
enum reason request_packet(struct qp *qp, uint32_t done, const struct key_table *keys,
			   uint32_t *psns, struct packet *p, struct span_list *gather);

/* Octets as over Ethernet and IPv4, for the rate limit. */
uint32_t request_octets_on_wire(const struct qp *qp, const struct packet *p);

#endif
