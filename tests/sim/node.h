/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node drives the transport core as an engine does, but without a port. It has flat memory with
 * regions and keys, queue pairs with their receive queues, copies that are made at once or later,
 * and completions and events in the order in which the core gave them. It follows the caller's loop
 * in transport.h. The simulator joins nodes by a link of frames; a story does it step by step.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "memory/key.h"
#include "prng.h"
#include "transport/transport.h"
#include "wire/envelope.h"

#define NODE_REGIONS	 64u
#define NODE_RECEIVES	 512u /* posted receives of one queue pair, a power of two */
#define NODE_COMPLETIONS 1024u /* not taken yet, a power of two */
#define NODE_PAYLOAD	 4096u
#define NODE_SRQS	 32u
/*
 * How many packets behind gaps an engine keeps for a program that is alone on it
 * (lib/lcore/moving/behind.c).
 */
#define NODE_KEPT	 ((LIMIT_BEHIND - LIMIT_BEHIND_KEPT) * 16 / 21)

/* A completion, and whether the receive queue caused it. */
struct node_completion {
	struct completion c;
	bool from_receive;
};

/* Posted receive requests. */
struct node_receives {
	uint8_t *request; /* NODE_RECEIVES of `stride` octets each */
	uint32_t stride;
	uint32_t head, tail;
};

/* A shared receive queue for XRC packets. */
struct node_srq {
	uint32_t srqn; /* number on the wire */
	uint32_t number; /* number in completions */
	uint32_t pd;
	struct node_receives receives;
};

/* A copy, atomic or invalidation that the core requested and that was not made yet. */
struct node_copy {
	uint64_t ticket;
	bool is_atomic;
	uint32_t invalidate; /* key; 0: a copy or an atomic */
	nanotime due;
	struct atomic_request atomic;
	struct span_list place;
	uint8_t octets[40 + NODE_PAYLOAD]; /* a datagram includes its network header */
};

/* A packet that arrived early and is kept until those before it have arrived. */
struct node_kept {
	TAILQ_ENTRY(node_kept) place; /* by PSN */
	struct packet packet;
	uint8_t payload[NODE_PAYLOAD];
};

TAILQ_HEAD(node_kept_list, node_kept);

struct node_qp {
	struct node *node;
	struct qp *core;
	struct qp_caps caps;
	uint32_t index;
	nanotime deadline;
	nanotime not_before; /* the core asked not to send before that time; 0: it did not */
	uint32_t events; /* since node_events_take */
	bool flushing; /* the core asked to flush the receive queue */

	struct node_receives receives;

	struct node_completion *completion;
	uint32_t completion_head, completion_tail;

	struct node_copy *copy; /* LIMIT_TICKETS of them, if copies are delayed */
	void *tickets; /* memory for as many tickets, once it was needed; otherwise NULL */
	uint32_t copy_head, copy_tail;
	uint64_t next_ticket; /* tickets count from 1 without gaps */

	struct flow flow;
	uint16_t identification;
	struct outcome outcome;
	enum reason reason; /* the outcome of the last packet */
	struct packet middle; /* the last packet, if is_middle */
	bool is_middle; /* it was accepted in the middle of a message, and its copy was made at once */
	struct node_kept_list kept[2]; /* requests, responses */
};

struct node {
	const char *name;
	uint8_t *memory;
	size_t size; /* octets */
	struct key_table keys;
	void *key_memory;
	struct region *region[NODE_REGIONS];
	uint32_t regions;
	struct node_srq srq[NODE_SRQS];
	uint32_t srqs;
	struct node_qp **qp;
	uint32_t qps;
	struct prng prng;
	bool keeps; /* keeps early packets, as an engine does; otherwise drops them */
	uint32_t kept; /* how many it keeps */
	bool parks; /* its owner resumes queue pairs that their path holds back */
	bool delay_copies; /* copies are made by node_settle, otherwise at once */
	bool hold_operations; /* binds and invalidations wait for node_operate */
	uint32_t copy_delay; /* maximum, in ns */
	double fail_copies; /* probability */
	uint64_t failed_copies;
	uint64_t alike; /* packets that came in a step of their own (qp_received_alike) */
	char fault[200]; /* a violation of the core's contract; "" if there was none */
};

void node_init(struct node *n, const char *name, size_t size, uint32_t qps, uint64_t seed);
void node_free(struct node *n);

/*
 * Registers [offset, offset + length) of the memory at address `iova`, cut into this many pieces
 * (every second one a peer piece). Returns the key.
 */
uint32_t node_register(struct node *n, size_t offset, size_t length, uint64_t iova, uint32_t pd,
		       uint32_t access, uint32_t pieces);
void node_deregister(struct node *n, uint32_t key);
/*
 * Binds a window as the operation says. The window's previous key ends; with 0 octets there is no
 * new one.
 */
void node_bind(struct node *n, const struct key_operation *o);

/*
 * A window on [offset, offset + length) of a region, bound through this queue pair (0: type 1).
 * Returns its key. A bind operation does the same with the key that it carries.
 */
uint32_t node_window(struct node *n, uint32_t region_key, uint64_t offset, uint64_t length,
		     uint32_t access, uint32_t qpn);
/* The same with the caller's descriptor, which must outlive the window. */
uint32_t node_window_in(struct node *n, struct region *window, uint32_t region_key, uint64_t offset,
			uint64_t length, uint32_t access, uint32_t qpn);
const struct region *node_region(const struct node *n, uint32_t key);

struct node_qp *node_qp_add(struct node *n, const struct qp_caps *caps, bool delay_copies);

/* The memory of a span. */
uint8_t *node_at(const struct node *n, const struct span *s);

/* False: the queue or the window is full. The elements or inline octets follow `w`. */
bool node_post_send(struct node_qp *q, const struct send_work *w, const void *tail, nanotime now);
bool node_post_receive(struct node_qp *q, uint64_t wr_id, const struct work_sge *sge,
		       uint32_t num_sge);
uint32_t node_receives_posted(const struct node_qp *q);
/* A shared receive queue for XRC; numbers in completions count from 1. */
struct node_srq *node_srq_add(struct node *n, uint32_t srqn, uint32_t pd, uint32_t max_sge);
bool node_srq_post(struct node_srq *s, uint64_t wr_id, const struct work_sge *sge,
		   uint32_t num_sge);

/* Handles a packet as an engine does. Returns the core's reason. */
enum reason node_received(struct node_qp *q, const struct packet *p, nanotime now);

/* Makes and reports delayed copies that are due (TIME_NEVER: all of them). */
void node_settle(struct node_qp *q, nanotime due, nanotime now);
/* Makes the oldest delayed copy now, or lets it fail. */
void node_settle_one(struct node_qp *q, bool ok, nanotime now);
nanotime node_copy_due(const struct node_qp *q);

/*
 * Executes the operation that the core handed out (if STATUS_SUCCESS) and reports it. False: there
 * is none.
 */
bool node_operate(struct node_qp *q, enum work_status status, nanotime now);

/*
 * The next packet, with its payload gathered into `payload` (p->payload points there or is inline).
 */
bool node_next(struct node_qp *q, nanotime now, struct packet *p, uint8_t *payload);
/* ... if it is like *before, the one that was made last, with nothing since (qp_next_alike). */
bool node_next_alike(struct node_qp *q, nanotime now, const struct packet *before, struct packet *p,
		     uint8_t *payload);

/*
 * The packet was sent, or was not sent. Unreliable services also need to know of a packet that was
 * sent.
 */
void node_sent(struct node_qp *q, const struct packet *p, nanotime now);
void node_unsent(struct node_qp *q, const struct packet *p, nanotime now);
void node_gather_failed(struct node_qp *q, const struct packet *p, nanotime now);

/* Handles an expired deadline, and whatever the caller's loop does after any event. */
void node_expire(struct node_qp *q, nanotime now);
void node_collect(struct node_qp *q, nanotime now);

int node_modify(struct node_qp *q, const struct qp_attributes *a, uint32_t mask, nanotime now);
void node_fail(struct node_qp *q, enum reason why, nanotime now);

/* Takes the oldest completion of this queue pair. */
bool node_take(struct node_qp *q, struct node_completion *c);
uint32_t node_events_take(struct node_qp *q);

#endif
