/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw queue pairs (IBV_QPT_RAW_PACKET): whole Ethernet frames in and out.
 *
 *	post_send --> core --> raw_build, raw_seal: gathers, segments, sums and checks the frame
 *		  --> the port; instead the loop inside the engine if the frame is for our own
 *		      MAC address; both if it is for a multicast address
 *	port, loop --> raw_input: steering rules --> each queue pair or WQ gets a copy on its lcore
 *
 * A WQ (ibv_create_wq(3)) is a raw queue pair without a send queue. A queue pair with an
 * indirection table has no queues at all: it is a struct rss that rules point to.
 */
#ifndef LCORE_RAW_H
#define LCORE_RAW_H

#include "lcore/lcore.h"
#include "lcore/raw/flow_table.h"
#include "lcore/raw/raw_hash.h"

/* ---- objects of the control path; lcores read what rules point to ---- */

struct raw_object { /* the common head of all of them */
	uint32_t handle;
	uint32_t context; /* handle */
	uint32_t users; /* objects that refer to it */
};

struct rwq_table {
	struct raw_object o;
	uint32_t entries; /* a power of two */
	struct engine_qp *wq[LIMIT_RWQ_TABLE];
};

struct rss {
	struct raw_object o;
	uint32_t pd; /* handle */
	struct rwq_table *table;
	/* read by lcores, never changed: */
	uint32_t fields; /* enum rss_field */
	uint32_t mask; /* entries - 1 */
	uint8_t key[RSS_KEY_LENGTH] __attribute__((aligned(4)));
	uint32_t qpn[LIMIT_RWQ_TABLE];
};

/* Each lcore counts in a cache line of its own. A reader adds them up. */
struct flow_counters {
	struct {
		uint64_t packets, octets;
	} __rte_cache_aligned lcore[LIMIT_LCORES];
};

struct engine_counters {
	struct raw_object o;
	struct flow_counters *count;
};

struct engine_flow {
	struct raw_object o;
	struct flow_rule rule;
	struct engine_qp *qp; /* this, or ... */
	struct rss *rss;
	struct engine_counters *counters; /* NULL: none */
	LIST_ENTRY(engine_flow) link; /* of all flows of the engine */
};

/* ---- receiving (rx.c calls) ---- */

/*
 * Offers a frame to the steering rules. `roce` true: it may be a RoCE packet for this engine, so
 * only sniffers see it. Returns true if the mbuf is gone: rules took it, and nothing else needs it.
 */
bool raw_input(struct lcore *l, struct rte_mbuf *m, bool roce, nanotime now);
/* A frame that raw_send put into the loop. Takes the mbuf. */
void raw_looped(struct lcore *l, struct rte_mbuf *m, nanotime now);
/* A frame that another lcore steered to a queue pair of this one. Takes the mbuf. */
void raw_arrived(struct lcore *l, struct rte_mbuf *m, nanotime now);

static inline bool raw_steering(const struct engine *e)
{
	return __atomic_load_n(&e->flows, __ATOMIC_RELAXED) != NULL;
}

/* ---- sending (frame.c and send.c call) ---- */

/* The most peer copies of one request: its spans, cut at its segments. */
#define RAW_COPIES (LIMIT_SPANS + LIMIT_TSO_SEGMENTS)

/* Gathers the frame, or begins to if peer memory is read later. */
void raw_build(struct lcore *l, struct engine_qp *q, struct staged_frame *s);
/*
 * Called when all octets are in the frame. Checks, segments and sums it, and decides where it goes.
 */
void raw_seal(struct lcore *l, struct staged_frame *s);
/* Tells the core why a frame is not sent, and counts it. */
void raw_refused(struct lcore *l, const struct staged_frame *s, nanotime now);
/* Sends one frame, or its segments. False: there is no room, and s->mbuf is what remains. */
bool raw_send(struct lcore *l, struct staged_frame *s);

#endif
