/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fixed number of places for packets that wait at an lcore, shared between users. Some places are
 * kept for users who have few. The programs of a user may have, together, `share` times as many as
 * are free besides; one program may have `share` times what is left to its user.
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
	uint16_t client; /* the program it counts against; the queue pair's may change */
	uint16_t user;
	struct packet packet; /* its payload is in the mbuf */
};

/* NULL: no memory. Of `places`, `kept` are for users who have fewer than `few`. */
struct slots *slots_create(uint32_t places, uint32_t kept, uint32_t few, uint32_t share);
void slots_destroy(struct slots *s);
/* A place for this packet of this program; NULL: the program may have no more. */
struct held_packet *slot_take(struct slots *s, const struct client *c, const struct packet *p,
			      struct rte_mbuf *m);
void slot_free(struct slots *s, struct held_packet *e);

#endif
