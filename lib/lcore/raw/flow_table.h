/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which raw queue pairs see a frame (ibv_create_flow(3)). Every change makes a new table, because
 * lcores may still read the old one (engine.flows, acquire), which is freed after a grace period.
 *
 *	sniffers		see every frame of the port, RoCE included
 *	normal rules		lowest priority value first; the first value with a matching rule
 *				wins, all rules of that value that match get a copy (as identical
 *				rules of several queue pairs do on ConnectX); a drop among them wins
 *	default rules		get what no normal rule took: only multicast, or everything
 */
#ifndef LCORE_FLOW_TABLE_H
#define LCORE_FLOW_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/limits.h"
#include "lcore/raw/raw_frame.h"

struct rss;
struct flow_counters;

/* Where matching frames go: to a queue pair by number, or to one of many by hash. */
struct flow_target {
	uint32_t qpn;
	const struct rss *rss; /* NULL: the queue pair */
};

struct flow_rule {
	uint32_t kind; /* enum flow_kind */
	uint32_t priority;
	uint32_t layers; /* enum flow_layer: those that a frame must have */
	uint32_t actions; /* enum flow_action */
	uint32_t tag;
	struct flow_counters *counters; /* NULL: none */
	struct flow_target target;
	struct flow_key value, mask;
};

struct flow_table {
	uint32_t count;
	uint32_t normal; /* how many normal rules there are; they stand in front, by priority */
	uint32_t sniffers; /* how many */
	struct flow_rule rule[];
};

/* The size of a table with room for that many rules, in octets. */
static inline size_t flow_table_bytes(uint32_t rules)
{
	return sizeof(struct flow_table) + rules * sizeof(struct flow_rule);
}

/* Inserts a rule in order. The table has room for it. */
void flow_table_add(struct flow_table *t, const struct flow_rule *rule);

struct flow_match {
	uint32_t count; /* how many rules see the frame */
	bool taken; /* by a normal or default rule, including a drop: nothing else gets it */
	const struct flow_rule *rule[LIMIT_FLOW_COPIES];
};

/*
 * Finds the rules that see this frame, at most LIMIT_FLOW_COPIES. `roce`: the frame is for the
 * engine's own queue pairs, so only sniffers see it. Drop rules are included, to be counted.
 */
void flow_table_match(const struct flow_table *t, const struct raw_frame *f, bool roce,
		      struct flow_match *match);

#endif
