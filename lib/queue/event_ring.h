/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of an rdma_cm channel in the arena. The control thread writes records, and the program
 * takes them in that order without a command. The engine keeps what a record shows until it has
 * seen that the record was taken, and may withdraw the record before. The records follow the page;
 * all have the same size.
 *
 * The program holds a lock while it takes a record, and while it sends a command that withdraws
 * records. So no record is withdrawn while it is read.
 */
#ifndef QUEUE_EVENT_RING_H
#define QUEUE_EVENT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "config/limits.h"

struct event_page {
	uint32_t posted; /* written by the engine: records posted so far, modulo 2^32 */
	uint32_t reserved0[15];
	uint32_t taken; /* written by the client: records taken; forged, it harms only itself */
	uint32_t reserved1[15];
};

static inline size_t event_ring_bytes(size_t record)
{
	return sizeof(struct event_page) + LIMIT_CM_SHOWN * record;
}

/* The place of the nth record. */
static inline void *event_ring_at(struct event_page *p, uint32_t n, size_t record)
{
	return (char *)(p + 1) + n % LIMIT_CM_SHOWN * record;
}

/* ---- the engine ---- */

/* Shows the program all records before `posted`. They are complete. */
static inline void event_ring_post(struct event_page *p, uint32_t posted)
{
	/* Release: pairs with event_ring_oldest, which then sees the records. */
	__atomic_store_n(&p->posted, posted, __ATOMIC_RELEASE);
}

/*
 * How many records were taken. `before`: the previous answer. `posted`: how many were posted. A
 * count outside these bounds is ignored.
 */
static inline uint32_t event_ring_taken(const struct event_page *p, uint32_t before,
					uint32_t posted)
{
	/*
	 * Acquire: pairs with event_ring_take. The program's reads are over before the record is
	 * reused.
	 */
	uint32_t n = __atomic_load_n(&p->taken, __ATOMIC_ACQUIRE);

	return n - before <= posted - before ? n : before;
}

/* ---- the program ---- */

/*
 * The oldest record that is not taken, if `taken` records were taken before. NULL: there is none.
 */
static inline const void *event_ring_oldest(struct event_page *p, uint32_t taken, size_t record)
{
	if (__atomic_load_n(&p->posted, __ATOMIC_ACQUIRE) == taken)
		return NULL;
	return event_ring_at(p, taken, record);
}

static inline void event_ring_take(struct event_page *p, uint32_t taken)
{
	__atomic_store_n(&p->taken, taken, __ATOMIC_RELEASE);
}

#endif
