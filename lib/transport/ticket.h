/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies under way. Tickets count from 1 without gaps and are settled in order. Acknowledgements,
 * replies and completions wait for the tickets before them.
 *
 *	settled          oldest open one              issued
 *	   |   ... ,     settled + 1, ...          ,     |
 */
#ifndef TRANSPORT_TICKET_H
#define TRANSPORT_TICKET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/psn.h"

enum ticket_kind {
	TICKET_WRITE, /* a peer's WRITE */
	TICKET_RECEIVE, /* a peer's SEND into a receive request */
	TICKET_ATOMIC, /* a peer's atomic, of record `owner` */
	TICKET_INVALIDATE, /* the key that a peer's SEND invalidates */
	TICKET_LANDING, /* a READ response or atomic's value, of request `owner` */
};

struct ticket {
	uint32_t psn : 24; /* of the packet */
	uint32_t kind : 8; /* enum ticket_kind */
	uint32_t msn; /* before the packet */
	uint32_t owner;
};

struct tickets {
	uint64_t issued; /* the last one */
	uint64_t settled; /* all up to this one are */
	uint64_t placing; /* the newest of a peer's request: receive completions wait for it */
	uint32_t mask;
	struct ticket *ring; /* of mask + 1, a power of two */
};

static inline struct ticket *ticket_at(const struct tickets *t, uint64_t number)
{
	return &t->ring[number & t->mask];
}

static inline bool tickets_open(const struct tickets *t)
{
	return t->settled != t->issued;
}

/* By the low 32 bits of a number, compared on a circle. */
static inline bool ticket_settled(const struct tickets *t, uint32_t number)
{
	return (int32_t)((uint32_t)t->settled - number) >= 0;
}

/* The next number, for a copy of this packet. qp_can_receive said that there is room. */
static inline uint64_t ticket_issue(struct tickets *t, enum ticket_kind kind, uint32_t psn,
				    uint32_t msn, uint32_t owner)
{
	uint64_t number = ++t->issued;

	assert(number - t->settled - 1 <= t->mask && "qp_can_receive kept room for it");
	assert(kind <= TICKET_LANDING);
	*ticket_at(t, number) = (struct ticket){
		.psn = psn & PSN_MASK, .kind = (uint8_t)kind, .msn = msn, .owner = owner
	};
	if (kind != TICKET_LANDING)
		t->placing = number;
	return number;
}

/* The oldest copy of a peer's request that is under way, or NULL. */
const struct ticket *ticket_oldest_request(const struct tickets *t);

#endif
