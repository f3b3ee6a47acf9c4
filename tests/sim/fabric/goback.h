/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair of another implementation: RDMA WRITEs of one size, with go-back-N as Linux's rxe
 * does it. It has at most 128 packets unacknowledged, requests an acknowledgement every 64 packets,
 * and otherwise waits for its timer. With DCQCN it acts like RoCE hardware: CNPs cut its rate, and
 * it has practically no window. Its peer may be of its own kind or the core. Packet numbers count
 * up freely from the first PSN; on the wire they are PSNs.
 */
#ifndef SIM_GOBACK_H
#define SIM_GOBACK_H

#include <stdbool.h>

#include "dcqcn.h"
#include "wire/packet.h"

struct goback_config {
	uint32_t dest_qpn, psn, mtu;
	uint32_t size; /* octets of a message */
	nanotime timeout;
	double dcqcn; /* bits a second of the line; 0: no DCQCN */
};

struct goback {
	struct goback_config is;
	/* requester */
	uint32_t una, nxt, top, end; /* packets: unacknowledged, next, never sent, never posted */
	uint32_t packets; /* of a message */
	uint32_t window, unasked;
	uint32_t completed; /* messages */
	uint32_t tries; /* left */
	nanotime retry_at;
	nanotime paced_until;
	struct dcqcn law;
	bool failed;
	uint64_t again; /* packets sent again */
	uint32_t timeouts;
	/* responder */
	uint32_t expected, messages;
	uint64_t va; /* where the next octets of a message are written */
	bool answer_due, nak_sent, cnp_due;
	uint8_t syndrome;
	nanotime cnp_at; /* not before */
	uint64_t cnps;
};

void goback_init(struct goback *g, const struct goback_config *is);

/* A message was posted. */
void goback_posted(struct goback *g);
/* Returns true if *p was made. A request is complete but for its memory, which the caller adds. */
bool goback_next(struct goback *g, nanotime now, struct packet *p);
/*
 * For a request that goback_next made: its message, and the octets of it that earlier packets
 * carry.
 */
uint32_t goback_message(const struct goback *g, const struct packet *p, uint32_t *done);
/* A packet arrived. Returns true if its payload is to be written to *va. */
bool goback_received(struct goback *g, const struct packet *p, nanotime now, uint64_t *va);
void goback_expired(struct goback *g, nanotime now);
/* The time at which goback_expired or goback_next should be called. */
nanotime goback_deadline(const struct goback *g, nanotime now);
bool goback_has_packet(const struct goback *g, nanotime now);

#endif
