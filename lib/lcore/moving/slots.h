/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fixed number of places for packets that wait at an lcore, shared between users. Some places are
 * kept for users who have few. The programs of a user may together have `share` times as many
 * places as are free, not counting the kept ones. One program may have `share` times what its user
 * may still take.
 */
#ifndef LCORE_SLOTS_H
#define LCORE_SLOTS_H

#include <sys/queue.h>

#include "lcore/lcore.h"

struct held_packet {
	union {
		STAILQ_ENTRY(held_packet) link; /* hold.c, and the list of free ones */
		TAILQ_ENTRY(held_packet) place; /* behind.c */
	};
	struct rte_mbuf *mbuf;
	uint16_t client; /* the program that it counts against; that of the queue pair may change */
	uint16_t user;
	struct packet packet; /* its payload is in the mbuf */
};

/* `kept` of the `places` are for users who have fewer than `few`. NULL: no memory. */
struct slots *slots_create(uint32_t places, uint32_t kept, uint32_t few, uint32_t share);
void slots_destroy(struct slots *s);
/* A place for this packet of this program. NULL: the program may not have another one. */
struct held_packet *slot_take(struct slots *s, const struct client *c, const struct packet *p,
			      struct rte_mbuf *m);
void slot_free(struct slots *s, struct held_packet *e);

#endif
