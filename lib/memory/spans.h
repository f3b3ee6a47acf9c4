/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spans say where octets of registered memory are. A key check turns (key, address, length, access)
 * into spans; no other code sees an address of the application.
 */
#ifndef MEMORY_SPANS_H
#define MEMORY_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/limits.h"
#include "memory/check.h"

/*
 * A span without memory: reads give zeros, and writes are lost. has_peer is set for a list with
 * such a span, because not all of the list is direct.
 */
#define SPAN_NOBODY UINT32_MAX

struct span {
	void *direct; /* mapped by the engine; NULL: a peer span */
	/* Of mapped memory, too, which may become peer memory before a mover has copied. */
	uint64_t peer_address; /* the address in the client's address space */
	uint32_t client; /* the client with that address space, or SPAN_NOBODY */
	uint32_t length; /* octets */
};

struct span_list {
	uint32_t count;
	uint32_t length; /* octets in all */
	bool has_peer; /* at least one span is a peer span */
	struct span span[LIMIT_SPANS];
};

static inline void span_list_clear(struct span_list *l)
{
	l->count = 0;
	l->length = 0;
	l->has_peer = false;
}

/*
 * Checks the key as key_check does, and appends the spans of [address, address + length) to *spans.
 */
enum reason key_spans(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint32_t length, struct span_list *spans);

/*
 * Finds the spans of `length` octets that begin `offset` octets into a scatter/gather list. Every
 * element that the range touches is checked. Zero-length elements are skipped and not checked.
 */
enum reason key_spans_of_list(const struct key_table *t, const struct work_sge *sge,
			      uint32_t num_sge, struct key_user user, uint32_t access,
			      uint64_t offset, uint32_t length, struct span_list *spans);

/*
 * Appends a range that lies in one piece, direct or not, as nearly all ranges of packets do.
 * Inline, because both ends do this for each packet.
 */
static inline void span_append(struct span_list *l, const struct region *r,
			       const struct region_piece *p, uint64_t offset, uint32_t length)
{
	/*
	 * Acquire: pairs with the release in cmd_leave_promoted.c, which makes the piece peer
	 * memory.
	 */
	void *direct = __atomic_load_n(&p->direct, __ATOMIC_ACQUIRE);
	uint64_t into = offset - p->offset;
	struct span *s = &l->span[l->count++];

	s->length = length;
	s->client = r->client;
	s->peer_address = p->peer_address + into;
	s->direct = NULL;
	if (direct != NULL)
		s->direct = (char *)direct + into;
	else
		l->has_peer = true;
	l->length += length;
}

/*
 * Appends the span to the empty list, as key_spans() does, if the range lies in a region of one
 * piece. False: it does not, the key does not allow the access, or the stages are measured. The
 * caller then calls key_spans().
 */
static inline bool key_one_span(const struct key_table *t, uint32_t key, struct key_user user,
				uint32_t access, uint64_t address, uint32_t length,
				struct span_list *spans)
{
	const struct region *r;

	assert(spans->count == 0 && "it is the only one");
	if (t->stages != NULL || length == 0 ||
	    key_look(t, key, user, access, address, length, &r) != REASON_NONE ||
	    r->kind != REGION_MEMORY || r->pieces != 1)
		return false;
	span_append(spans, r, r->piece, address - r->iova, length);
	return true;
}

/* The same for octets of a scatter/gather list, as key_spans_of_list(). */
static inline bool key_one_span_of_list(const struct key_table *t, const struct work_sge *sge,
					uint32_t num_sge, struct key_user user, uint32_t access,
					uint64_t offset, uint32_t length, struct span_list *spans)
{
	return num_sge == 1 && range_inside(offset, length, sge->length) &&
	       key_one_span(t, sge->lkey, user, access, sge->addr + offset, length, spans);
}

#endif
