/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a connection: the requests that one queue pair posts, their expected results at
 * the other end, and the receive requests there. While a request is under way it has memory of its
 * own on both sides, with guard octets around and between its octets.
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
	uint64_t pattern; /* the seed of the message's octets */
	uint64_t before, after; /* atomics: the word */
	uint32_t length;
	uint32_t number;
	uint8_t opcode; /* enum work_opcode */
	bool signaled;
	bool arrived; /* its receive completion has been seen */
	bool counter; /* FETCH ADD on the shared counter */
	uint32_t key; /* key to invalidate, local or remote; 0: none */
	alignas(struct region) uint8_t window[sizeof(struct region)]; /* the window of that key */
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
	FAULT_OWNER, /* the program of the sending queue pair dies */
	FAULTS
};

/* Common to all streams of a run. */
struct workload {
	const struct sim_config *config;
	struct prng prng;
	uint32_t max_message; /* octets */
	uint32_t slot_octets;
	uint32_t messages; /* of a stream (XRC has no reverse direction) */
	uint32_t mtu;
	bool lossy; /* the link may lose frames */
	bool hopeless; /* ... so many that retries may run out */
	uint64_t added[2]; /* sum of additions to the shared counter of each node */
	uint8_t *scratch; /* one message */
	char why[512]; /* the first fault that was found */
	struct sim_result *result;
	nanotime last_progress;
};

struct stream {
	struct workload *w;
	struct node_qp *from, *to;
	struct node_srq *srq; /* of its messages (XRC); NULL: the queue pair's own */
	uint32_t messages; /* number of messages to post */
	struct stream *back; /* the other direction */
	uint32_t from_node, pair;
	uint32_t local_key, remote_key; /* keys of the sender's and of the receiver's memory */
	uint64_t local_base, remote_base; /* address of octet 0 */
	uint32_t local_slots, remote_slots, receive_slots; /* offsets of the first slot */
	uint32_t counter; /* offset of the shared word at the receiver */

	struct job job[STREAM_JOBS];
	uint32_t posted, completed; /* requests, free-running */
	uint32_t silent; /* unsignaled requests since the last signaled one */
	uint32_t consumer[STREAM_JOBS]; /* receive requests that were used, in order */
	uint32_t consumers, consumed;

	struct receive receive[STREAM_RECEIVES];
	uint32_t receives_posted, receives_done;
	uint32_t receive_failures; /* completions with an error other than a flush */

	enum fault fault; /* the fault that this stream causes */
	uint32_t fault_at; /* the request with the fault */
	bool failed; /* the sending queue pair is in ERR, and flushes follow */
	bool may_fail; /* this connection has a fault */
	bool anything_may_fail; /* ... of any kind, because copies fail */
};

/* The octets of memory that a node needs for `pairs` connections: the counter, then slots. */
size_t stream_memory(const struct workload *w, uint32_t pairs);
void stream_init(struct stream *s, struct workload *w, struct node_qp *from, struct node_qp *to,
		 uint32_t pair, uint32_t from_node);

/* The programs run: they post requests. */
void stream_post(struct stream *s, nanotime now);
void stream_post_receives(struct stream *s, bool lazy);
/* Handles a send completion of the sender, or a receive completion of the receiver. */
void stream_sent(struct stream *s, const struct completion *c, nanotime now);
void stream_received(struct stream *s, const struct completion *c);

/* All requests are posted and complete. */
bool stream_done(const struct stream *s);
/* Checks requests that are still open, and overwrites their memory with guards. */
void stream_end(struct stream *s);

#define wrong(w, ...)                                                      \
	do {                                                               \
		if ((w)->why[0] == '\0')                                   \
			snprintf((w)->why, sizeof((w)->why), __VA_ARGS__); \
	} while (0)

#endif
