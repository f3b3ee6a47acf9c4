/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/spans.h"

/* The piece that holds this offset of the region. */
static uint32_t piece_at(const struct region *r, uint64_t offset)
{
	uint32_t low = 0, high = r->pieces;

	assert(r->pieces > 0 && r->piece[0].offset == 0 && "pieces cover the region");
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (r->piece[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static bool nobody_append(struct span_list *l, uint32_t length)
{
	if (l->count == LIMIT_SPANS)
		return false;
	l->span[l->count++] = (struct span){ .client = SPAN_NOBODY, .length = length };
	l->has_peer = true;
	l->length += length;
	return true;
}

/* Appends the spans of a range inside the region. False: a list does not hold so many spans. */
static bool spans_append(struct span_list *l, const struct region *r, uint64_t offset,
			 uint32_t length)
{
	uint32_t i;

	if (r->kind == REGION_NULL)
		return length == 0 || nobody_append(l, length);
	if (r->kind == REGION_WINDOW) {
		offset += r->parent_offset;
		r = r->parent;
	}
	assert(range_inside(offset, length, r->length) && "key_check, and windows lie in regions");
	for (i = r->pieces == 1 ? 0 : piece_at(r, offset); length > 0; i++) {
		uint64_t end = i + 1 < r->pieces ? r->piece[i + 1].offset : r->length;
		uint32_t n = (uint32_t)MIN_OF(end - offset, length);

		assert(i < r->pieces && offset >= r->piece[i].offset && offset < end);
		if (l->count == LIMIT_SPANS)
			return false;
		span_append(l, r, &r->piece[i], offset, n);
		offset += n;
		length -= n;
	}
	return true;
}

enum reason key_spans(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint32_t length, struct span_list *spans)
{
	const struct region *r;
	enum reason why;

	if (spans->count == 0 && key_one_span(t, key, user, access, address, length, spans))
		return REASON_NONE;
	why = key_check(t, key, user, access, address, length, &r);
	if (why != REASON_NONE)
		return why;
	return spans_append(spans, r, address - r->iova, length) ? REASON_NONE
								 : REASON_MEMORY_FAULT;
}

enum reason key_spans_of_list(const struct key_table *t, const struct work_sge *sge,
			      uint32_t num_sge, struct key_user user, uint32_t access,
			      uint64_t offset, uint32_t length, struct span_list *spans)
{
	if (num_sge == 1 && offset < sge->length && length <= sge->length - offset && length > 0)
		return key_spans(t, sge->lkey, user, access, sge->addr + offset, length, spans);
	for (uint32_t i = 0; i < num_sge && length > 0; i++) {
		uint32_t n;
		enum reason why;

		if (offset >= sge[i].length) { /* it is empty, or ends before the range begins */
			offset -= sge[i].length;
			continue;
		}
		n = (uint32_t)MIN_OF(sge[i].length - offset, length);
		/*
		 * addr + offset may wrap. The sum then lies before the region, or the check finds
		 * it out of range.
		 */
		why = key_spans(t, sge[i].lkey, user, access, sge[i].addr + offset, n, spans);
		if (why != REASON_NONE)
			return why;
		offset = 0;
		length -= n;
	}
	return length == 0 ? REASON_NONE : REASON_KEY_RANGE;
}
