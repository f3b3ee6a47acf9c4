/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a connection: requests that one queue pair posts, what has to become of them
 * at the other end, and the receive requests there. Every request has memory of its own on both
 * sides while it is under way; around and between its octets stand guard octets.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include <stdalign.h>

#include "extent.h"
#include "node.h"
#include "sim.h"

#define STREAM_JOBS	32u /* requests under way, a power of two */
#define STREAM_RECEIVES 32u

struct job {
	uint64_t pattern; /* seed of its octets */
	uint64_t before, after; /* atomics: the word */
	uint32_t length;
	uint32_t number;
	uint8_t opcode; /* enum work_opcode */
	bool signaled;
	bool arrived; /* its receive completion was seen */
	bool counter; /* FETCH ADD on the counter that all share */
	uint32_t key; /* to invalidate, here or there; 0: none */
	alignas(struct region) uint8_t window[sizeof(struct region)]; /* ... and what it names */
	struct extent local, remote;
};

struct receive {
	uint64_t wr_id;
	struct extent into;
};

enum fault {
	FAULT_NONE,
	FAULT_RKEY,
	FAULT_RANGE,
	FAULT_LKEY,
	FAULT_ALIGNMENT,
	FAULT_TOO_LONG,
	FAULT_OPCODE,
	FAULT_OWNER, /* the program of the sending queue pair is gone */
	FAULTS
};

/* What is common to all streams of a run. */
struct workload {
	const struct sim_config *config;
	struct prng prng;
	uint32_t max_message; /* octets */
	uint32_t slot_octets;
	uint32_t messages; /* of a stream (the way back of XRC has none) */
	uint32_t mtu;
	bool lossy; /* the link may take what it is given */
	bool hopeless; /* ... so often that retries may run out */
	uint64_t added[2]; /* to the shared counter of each node */
	uint8_t *scratch; /* one message */
	char why[512]; /* the first thing that was wrong */
	struct sim_result *result;
	nanotime last_progress;
};

struct stream {
	struct workload *w;
	struct node_qp *from, *to;
	struct node_srq *srq; /* XRC: where its messages go; NULL: to the queue pair's own queue */
	uint32_t messages; /* that will be posted */
	struct stream *back; /* the other direction */
	uint32_t from_node, pair;
	uint32_t local_key, remote_key; /* of the sender's, of the receiver's memory */
	uint64_t local_base, remote_base; /* address of octet 0 */
	uint32_t local_slots, remote_slots, receive_slots; /* offsets of the first */
	uint32_t counter; /* offset of the shared word at the receiver */

	struct job job[STREAM_JOBS];
	uint32_t posted, completed; /* requests, free-running */
	uint32_t silent; /* unsignaled ones since the last signaled */
	uint32_t consumer[STREAM_JOBS]; /* requests that take a receive request, in order */
	uint32_t consumers, consumed;

	struct receive receive[STREAM_RECEIVES];
	uint32_t receives_posted, receives_done;
	uint32_t receive_failures; /* completions with a status of their own, not flushed */

	enum fault fault; /* that this stream will make */
	uint32_t fault_at; /* its request */
	bool failed; /* the sending queue pair is in ERR: flushes follow */
	bool may_fail; /* a fault is on this connection */
	bool anything_may_fail; /* ... of any kind: copies fail */
};

/* Octets of a node's memory that `pairs` connections need: the counter, then slots. */
size_t stream_memory(const struct workload *w, uint32_t pairs);
void stream_init(struct stream *s, struct workload *w, struct node_qp *from, struct node_qp *to,
		 uint32_t pair, uint32_t from_node);

/* What the programs do when they have the processor. */
void stream_post(struct stream *s, nanotime now);
void stream_post_receives(struct stream *s, bool lazy);
/* A send completion of the sender, a receive completion of the receiver. */
void stream_sent(struct stream *s, const struct completion *c, nanotime now);
void stream_received(struct stream *s, const struct completion *c);

/* Nothing is left to be posted or to complete. */
bool stream_done(const struct stream *s);
/* At the end: what was still open is as it should be, and its memory becomes guards. */
void stream_end(struct stream *s);

#define wrong(w, ...)                                                      \
	do {                                                               \
		if ((w)->why[0] == '\0')                                   \
			snprintf((w)->why, sizeof((w)->why), __VA_ARGS__); \
	} while (0)

#endif
