/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair of another make: RDMA WRITEs of one size, and go-back-N as Linux' rxe does it, which
 * keeps 128 packets unacknowledged, asks for an acknowledgement every 64, and otherwise waits for
 * its timer. With DCQCN it is as RoCE hardware: a rate that CNPs cut, and no window to speak of. It
 * talks to its own kind and to the core.
 *
 * Numbers of packets run free from the first PSN; on the wire they are PSNs.
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
	uint64_t va; /* where the next octets of a message go */
	bool answer_due, nak_sent, cnp_due;
	uint8_t syndrome;
	nanotime cnp_at; /* not before */
	uint64_t cnps;
};

void goback_init(struct goback *g, const struct goback_config *is);

/* A message was posted. */
void goback_posted(struct goback *g);
/* Returns true if *p was made. Of a request only what the numbers say: the caller adds the memory. */
bool goback_next(struct goback *g, nanotime now, struct packet *p);
/* Of a request that goback_next made: its message, and the octets of it that are in earlier packets. */
uint32_t goback_message(const struct goback *g, const struct packet *p, uint32_t *done);
/*
 * A packet. Returns true if its payload is to be written to *va.
 */
bool goback_received(struct goback *g, const struct packet *p, nanotime now, uint64_t *va);
void goback_expired(struct goback *g, nanotime now);
/* When goback_expired or goback_next is worth a call. */
nanotime goback_deadline(const struct goback *g, nanotime now);
bool goback_has_packet(const struct goback *g, nanotime now);

#endif
