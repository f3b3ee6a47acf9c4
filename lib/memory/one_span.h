/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nearly every range that a packet is about: one piece of one region, direct or not. Inline, as both ends of
 * each packet ask for one.
 */
#ifndef MEMORY_ONE_SPAN_H
#define MEMORY_ONE_SPAN_H

#include "memory/look.h"
#include "memory/span.h"

static inline void span_append(struct span_list *l, const struct region *r,
			       const struct region_piece *p, uint64_t offset, uint32_t length)
{
	/* Acquire: pairs with the release in cmd_leave_promoted.c, which makes it peer memory. */
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
 * The empty list gets the span, as from key_spans(). False: the range is another one, or the key does not allow it, or
 * somebody measures the stages; key_spans() knows what to do then.
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

/* The same for octets of a list of elements, as key_spans_of_list(). */
static inline bool key_one_span_of_list(const struct key_table *t, const struct work_sge *sge,
					uint32_t num_sge, struct key_user user, uint32_t access,
					uint64_t offset, uint32_t length, struct span_list *spans)
{
	return num_sge == 1 && range_inside(offset, length, sge->length) &&
	       key_one_span(t, sge->lkey, user, access, sge->addr + offset, length, spans);
}

#endif
