/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The traffic of one queue pair in a scenario: messages of one size, `depth` of them under way,
 * until it is told to stop. Each message has a slot of its own on both sides while it is under way,
 * with guard octets around it. Checked:
 *
 *	messages complete once and in order, and none fails
 *	a message that is complete is in its place, unchanged, and nothing beside it was written
 *	at the end nothing else was written either
 */
#ifndef SIM_TRANSFER_H
#define SIM_TRANSFER_H

#include "endpoint.h"
#include "fabric.h"
#include "measure.h"

#define TRANSFER_BASE UINT64_C(0x7f0000000000) /* address of a host's octet 0 */

struct transfer {
	struct host *from, *to;
	struct endpoint *out, *in; /* of those */
	struct measure *measure;
	uint32_t number;
	uint8_t opcode; /* enum work_opcode: WRITE, SEND, READ */
	uint32_t size, depth, stride;
	uint32_t source_at,
		sink_at; /* offsets of the first slots, of the source and of the target */
	uint32_t source_key, sink_key;
	uint32_t posted, completed, received;
	bool stopped; /* posts no more */
	bool failed; /* its queue pair is in error */
	bool gone; /* nobody answers any more */
	nanotime *posted_at; /* `depth` of them */
	uint64_t octets; /* of messages that completed in the measured time */
};

/* Octets of memory that a transfer needs on either side. */
size_t transfer_memory(uint32_t size, uint32_t depth);
/* The offset of a message's octets among slots that begin at `first`. */
uint32_t transfer_slot(const struct transfer *t, uint32_t first, uint32_t message);

void transfer_start(struct transfer *t, struct fabric *f);
/* Takes the endpoint's completions, and posts. */
void transfer_settle(struct transfer *t, struct fabric *f, struct endpoint *e);
/* The program at its far end is killed. */
void transfer_lose_peer(struct transfer *t);
bool transfer_done(const struct transfer *t);
/* The last checks. */
void transfer_end(struct transfer *t, struct fabric *f);

#endif
