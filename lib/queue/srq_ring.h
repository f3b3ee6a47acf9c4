/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's side of a shared receive queue: one program posts, several lcores take. An lcore
 * finds the oldest request, copies it, and then takes it by moving the head. If another lcore has
 * taken the request meanwhile, the head has moved already, so the copy is void and the lcore looks
 * again. No lcore holds a slot while it reads, so a slot is free as soon as its request is taken,
 * even if an lcore is preempted meanwhile. A program that polls a completion can post one more.
 *
 *	shared consumer tail = head (private)		shared producer tail
 *	|-- free ... -----------------|-- waiting --------------|
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
	uint64_t head; /* private: requests taken so far; the low half is the next position */
	struct srq_ring *next; /* atomic: the successor; NULL: none */
};

/* The caller has formatted the memory with ring_format for one producer, the program. */
void srq_ring_init(struct srq_ring *r, void *memory, uint32_t size, uint32_t stride);

/* How many requests wait in the ring, at most size - 1, or RING_BROKEN. Any thread. */
uint32_t srq_ring_waiting(const struct srq_ring *r);

enum srq_ring_look {
	SRQ_RING_EMPTY,
	SRQ_RING_FOUND,
	SRQ_RING_ILL, /* the program wrote an impossible tail */
};

/* A request that an lcore has found, but does not have yet. */
struct srq_ring_found {
	const void *slot;
	uint64_t at;
};

/*
 * Finds the oldest request. The caller copies the slot out, and then takes the request. Until then
 * its octets may change at any moment: they mean nothing before the take. Any lcore.
 */
enum srq_ring_look srq_ring_find(const struct srq_ring *r, struct srq_ring_found *f);
/*
 * True: the request is the caller's, its copy is whole, and the slot is free. False: another lcore
 * took it. Any lcore.
 */
bool srq_ring_take(struct srq_ring *r, const struct srq_ring_found *f);

#endif
