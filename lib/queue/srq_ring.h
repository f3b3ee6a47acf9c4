/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's side of a shared receive queue: one program posts, several lcores take. An lcore
 * reserves a position in a private head and reads the slot. The lcore that finishes last advances
 * the shared consumer tail, as in rte_ring's RTS mode. An lcore that is preempted while it reads a
 * slot delays when slots become free again, but no other lcore waits for it.
 *
 *	shared consumer tail    tail (given back)    head (reserved)     shared producer tail
 *	|-- free ... --------------|-- being read --------|-- waiting ---------|
 *
 * A resize makes a new ring, and the old one names it as its successor. From then on the program
 * posts into the new ring, and lcores take from the old one until it is empty.
 */
#ifndef QUEUE_SRQ_RING_H
#define QUEUE_SRQ_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/ring.h"

struct srq_ring {
	uint8_t *shared;
	uint32_t size; /* slots, a power of two */
	uint32_t stride; /* octets */
	bool one_lcore; /* only one lcore takes, so no locked instruction is needed */
	uint64_t head; /* private: next position (low half), takes begun (high half) */
	uint64_t tail; /* private: position given back (low half), takes finished (high half) */
	struct srq_ring *next; /* atomic: the successor; NULL: none */
};

/* The caller has formatted the memory with ring_format for one producer, the program. */
void srq_ring_init(struct srq_ring *r, void *memory, uint32_t size, uint32_t stride);

/* How many requests wait in the ring, at most size - 1, or RING_BROKEN. Any thread. */
uint32_t srq_ring_waiting(const struct srq_ring *r);

enum srq_ring_take {
	SRQ_RING_EMPTY,
	SRQ_RING_TAKEN,
	SRQ_RING_ILL, /* the program wrote an impossible tail */
};

/*
 * Takes the oldest request: *slot holds it until srq_ring_finish, which the caller calls at once.
 * The caller copies the slot out before looking at anything in it. Any lcore.
 */
enum srq_ring_take srq_ring_take(struct srq_ring *r, const void **slot);
void srq_ring_finish(struct srq_ring *r);

#endif
