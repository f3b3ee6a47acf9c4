/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that an engine shares with one client: a sparse memfd, mapped once on each side, or
 * plain memory for an embedded program. Both sides name everything in it by its offset. The engine
 * hands out ranges and keeps their sizes in private memory. The client can write all of the arena,
 * so the engine never trusts what it reads back from there.
 *
 *	offset 0: struct client_page     then ranges: rings, queue pair pages, CQ pages
 */
#ifndef QUEUE_ARENA_H
#define QUEUE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/limits.h"

/*
 * Words that a client and the lcores tell each other outside the rings. Both sides write these
 * words with relaxed or release stores. A client that forges them harms only itself.
 */
struct lcore_page {
	uint32_t sleeping; /* engine writes: 1 while this lcore waits on its eventfd */
	uint32_t processor; /* engine writes: where it ran last, and 1; 0: unknown */
	uint32_t reserved[14];
};

/* The engine's clock: ns + (TSC now - tsc) * mult / 2^32. Never changes. */
struct clock_page {
	uint64_t tsc;
	uint64_t ns;
	uint64_t mult;
};

struct client_page {
	uint64_t heartbeat; /* the engine increments it at least every 100 ms */
	uint32_t closed; /* 1: the engine is stopping or has ended this client */
	uint32_t reserved0;
	struct clock_page clock;
	uint64_t reserved[3];
	struct lcore_page lcore[LIMIT_LCORES];
};

/* Beside the rings of a queue pair. */
struct qp_page {
	/* written by the engine */
	uint32_t retired; /* send requests that left the window, modulo 2^32 */
	/* 1: the queue pair is in ERR, so ring the doorbell after posting a receive */
	uint32_t flush_receives;
	uint32_t state; /* enum qp_state, as of the last change */
	uint32_t lcore; /* the lcore with its doorbell ring and eventfd; changes before RTR only */
	uint32_t reserved0[12];
	/* written by the client; cleared by the engine before it drains */
	uint32_t doorbell; /* 1: the queue pair is in the doorbell ring */
	uint32_t reserved1[15];
};

/* Beside the ring of a shared receive queue. */
struct srq_page {
	uint32_t used; /* engine writes: requests that messages took, modulo 2^32 */
	uint32_t doorbell; /* tag matching; 1: the SRQ is in the doorbell ring */
	uint32_t tags_gone; /* engine writes: entries that left the tag list, modulo 2^32 */
	uint32_t reserved[13];
};

enum cq_armed {
	CQ_NOT_ARMED = 0,
	CQ_ARMED_SOLICITED = 1,
	CQ_ARMED_NEXT = 2,
};

/* Beside the ring of a CQ. */
struct cq_page {
	uint32_t armed; /* enum cq_armed: set by the client, cleared by the event's sender */
	uint32_t overrun; /* engine writes: 1 once a completion found the ring full */
	uint32_t reserved[14];
};

/* The engine's side of an arena. */
struct arena;

/*
 * A memfd of LIMIT_ARENA_BYTES, sealed against shrinking and growing. NULL with errno. The caller
 * destroys the arena. All functions here are for the control thread.
 */
struct arena *arena_create_shared(const char *name);
/* The same in anonymous memory, for an embedded program. */
struct arena *arena_create_private(void);
void arena_destroy(struct arena *a);
/* Returns the memfd, which the arena keeps; -1 for private memory. */
int arena_fd(const struct arena *a);
void *arena_base(const struct arena *a);

/*
 * Allocates zeroed octets, aligned to 64 octets, or to a page if they fill a page or more. Returns
 * their offset, or 0 when the arena is full (the client page is at offset 0).
 */
uint64_t arena_allocate(struct arena *a, size_t octets);
/*
 * Frees a range and drops its pages, except that one page for small ranges of each size may stay.
 * `octets`: the number that was allocated. Offset 0 does nothing.
 */
void arena_free(struct arena *a, uint64_t offset, size_t octets);

static inline void *arena_at(const struct arena *a, uint64_t offset)
{
	return (char *)arena_base(a) + offset;
}

#endif
