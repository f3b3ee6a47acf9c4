/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that an engine and one client both map: one sparse memfd a client, mapped once on
 * each side (or plain memory, for an embedded program). Everything in it is named by its offset.
 * The engine hands out ranges and knows their sizes from private memory; the client can write all
 * of it, so nothing that the engine wrote there is ever read back as truth.
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
 * What a client and its lcores tell each other besides the rings. All words are written with
 * relaxed or release stores; a client that forges them harms only itself.
 */
struct lcore_page {
	uint32_t sleeping; /* engine writes: 1 while this lcore waits on its eventfd (kick it) */
	uint32_t reserved[15];
};

/* The engine's clock: ns + (TSC now - tsc) * mult / 2^32. Never changes. */
struct clock_page {
	uint64_t tsc;
	uint64_t ns;
	uint64_t mult;
};

struct client_page {
	uint64_t heartbeat; /* the engine counts while it lives, at least every 100 ms */
	uint32_t closed; /* the engine is going down or has ended this client */
	uint32_t reserved0;
	struct clock_page clock;
	uint64_t reserved[3];
	struct lcore_page lcore[LIMIT_LCORES];
};

/* Beside the rings of a queue pair. */
struct qp_page {
	/* written by the engine */
	uint32_t retired; /* send requests that left the window, modulo 2^32 */
	uint32_t
		flush_receives; /* 1: the queue pair is in ERR, ring the doorbell after posting a receive */
	uint32_t state; /* enum qp_state, as of the last change */
	uint32_t reserved0[13];
	/* written by the client; cleared by the engine before it drains */
	uint32_t doorbell; /* 1: the queue pair stands in the doorbell ring */
	uint32_t reserved1[15];
};

/* Beside the ring of a shared receive queue. */
struct srq_page {
	uint32_t used; /* the engine counts: requests that messages took, modulo 2^32 */
	uint32_t doorbell; /* 1 while it stands in the doorbell ring (tag matching) */
	uint32_t tags_gone; /* the engine counts: entries that left the tag list, modulo 2^32 */
	uint32_t reserved[13];
};

enum cq_armed {
	CQ_NOT_ARMED = 0,
	CQ_ARMED_SOLICITED = 1,
	CQ_ARMED_NEXT = 2,
};

/* Beside the ring of a CQ. */
struct cq_page {
	uint32_t armed; /* the client sets it, the engine takes it back when it sends the event */
	uint32_t overrun; /* engine writes */
	uint32_t reserved[14];
};

/* The engine's side of an arena. */
struct arena;

/* A memfd of LIMIT_ARENA_BYTES sealed against shrinking and growing; NULL with errno on failure. */
struct arena *arena_create_shared(const char *name);
/* Anonymous memory for an embedded program: no descriptor. */
struct arena *arena_create_private(void);
void arena_destroy(struct arena *a);
int arena_fd(const struct arena *a); /* -1: private */
void *arena_base(const struct arena *a);

/*
 * A zeroed range, aligned to 64 octets (to a page from one page up). Returns its offset, 0 when
 * the arena is full (offset 0 is the client page). Control path only.
 */
uint64_t arena_allocate(struct arena *a, size_t octets);
/* Gives it back; its pages are dropped. `octets` as it was allocated. */
void arena_free(struct arena *a, uint64_t offset, size_t octets);

static inline void *arena_at(const struct arena *a, uint64_t offset)
{
	return (char *)arena_base(a) + offset;
}

#endif
