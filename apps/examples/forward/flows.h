/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flows that a forwarder has seen, and the layout of what it writes into a collector's memory:
 *
 *	offset 0	struct flow_totals	all forwarders add to it (FETCH_ADD)
 *	offset 64	struct flow[FLOWS]	one forwarder writes it (WRITE)
 *
 * A collector gives each forwarder a table of its own behind the totals that they share.
 */
#ifndef FLOWS_H
#define FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#define FLOWS 4096u

/* IPv4 and ports in network order. */
struct flow_key {
	uint32_t source, destination;
	uint16_t source_port, destination_port; /* 0 if the protocol has none */
	uint8_t protocol;
	uint8_t zero[3];
};

struct flow {
	struct flow_key key;
	uint64_t packets, octets;
};

struct flow_totals {
	uint64_t packets, octets;
	uint64_t unused[6];
};

/* A collector's message to a forwarder, in rdma_accept(): where to write. Network order. */
struct flow_place {
	uint64_t totals, table; /* addresses */
	uint32_t rkey;
	uint32_t flows; /* room of the table */
};

struct flow_table;

/* NULL: no memory. */
struct flow_table *flows_create(void);
/* Counts a packet. Nothing happens if the table is full and the flow is new. One thread. */
void flows_count(struct flow_table *t, const struct flow_key *key, uint32_t octets);
/* The first *n flows are in use; they are counted up meanwhile. Any thread. */
struct flow *flows_used(struct flow_table *t, uint32_t *n);

#endif
