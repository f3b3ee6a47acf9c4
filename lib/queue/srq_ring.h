/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's side of a shared receive queue: one program posts, several lcores take. Positions
 * are reserved by an atomic step of an engine-private head, slots are read, and the shared
 * consumer tail is moved by whoever finishes last (as rte_ring's RTS mode does): an lcore that is
 * preempted while it reads a slot delays when slots are free again, but makes nobody wait.
 *
 *	shared consumer tail    tail (given back)    head (reserved)     shared producer tail
 *	|-- free ... --------------|-- being read --------|-- waiting ---------|
 *
 * A resize makes a new ring, which the old one names as its successor: the program posts into the
 * new one from then on, lcores take from the old one until it is empty.
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
	bool one_lcore; /* one lcore alone takes: no locked instruction is needed */
	uint64_t head; /* private: position (low half) and takes begun (high half) */
	uint64_t tail; /* private: position given back (low half) and takes finished (high half) */
	struct srq_ring *next; /* atomic: the successor, NULL while there is none */
};

/* The memory is formatted by ring_format (one producer, the program). */
void srq_ring_init(struct srq_ring *r, void *memory, uint32_t size, uint32_t stride);

/* Requests that nobody has taken, at most size - 1, or RING_BROKEN. Any thread. */
uint32_t srq_ring_waiting(const struct srq_ring *r);

enum srq_ring_take {
	SRQ_RING_EMPTY,
	SRQ_RING_TAKEN,
	SRQ_RING_ILL, /* the program wrote nonsense into it */
};

/*
 * Takes the oldest request: *slot is where it stands until srq_ring_finish, which follows at once.
 * Copy it out before anything in it is looked at. Any lcore.
 */
enum srq_ring_take srq_ring_take(struct srq_ring *r, const void **slot);
void srq_ring_finish(struct srq_ring *r);

#endif
