/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the used parts of the promoted file. */
#include <string.h>

#include "drivers/client_memory/promote_private.h"

bool promote_insert_part(uint32_t at, struct part p)
{
	if (promote_state.parts == LIMIT_PROMOTE_RANGES)
		return false;
	memmove(&promote_state.part[at + 1], &promote_state.part[at],
		(promote_state.parts - at) * sizeof(p));
	promote_state.part[at] = p;
	promote_state.parts++;
	return true;
}

void promote_remove_part(uint32_t at)
{
	promote_state.parts--;
	memmove(&promote_state.part[at], &promote_state.part[at + 1],
		(promote_state.parts - at) * sizeof(promote_state.part[0]));
}

uint32_t promote_part_at(uint64_t offset)
{
	uint32_t low = 0, high = promote_state.parts;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (promote_state.part[middle].offset + promote_state.part[middle].length <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool promote_split_part(uint64_t offset)
{
	uint32_t i = promote_part_at(offset);
	struct part *p = &promote_state.part[i], behind;

	if (i == promote_state.parts || p->offset >= offset)
		return true;
	behind = *p;
	behind.took = 0;
	behind.offset = offset;
	behind.length = p->offset + p->length - offset;
	if (!promote_insert_part(i + 1, behind))
		return false;
	p->length = offset - p->offset;
	return true;
}

/*
 * The part that begins at `at`. If there is none, inserts one that reaches to the next part or to
 * `end`.
 */
static struct part *next_part(uint64_t at, uint64_t end)
{
	uint32_t i = promote_part_at(at);
	struct part p = { .offset = at, .length = end - at };

	if (i < promote_state.parts && promote_state.part[i].offset == at)
		return &promote_state.part[i];
	if (i < promote_state.parts && promote_state.part[i].offset < end)
		p.length = promote_state.part[i].offset - at;
	return promote_insert_part(i, p) ? &promote_state.part[i] : NULL;
}

bool promote_use_parts(uint64_t offset, uint64_t length)
{
	uint64_t end = offset + length, at = offset;
	struct part *p;

	if (!promote_split_part(offset) || !promote_split_part(end))
		return false;
	for (; at < end && (p = next_part(at, end)) != NULL; at += p->length)
		p->users++;
	if (at == end)
		return true;
	for (uint32_t i = promote_part_at(offset);
	     i < promote_state.parts && promote_state.part[i].offset < at; i++)
		promote_state.part[i].users--;
	return false;
}

static uint64_t slot_end(uint64_t offset)
{
	return ((offset >> PROMOTE_SLOT_SHIFT) + 1) << PROMOTE_SLOT_SHIFT;
}

uint64_t promote_reach(uint32_t i)
{
	uint64_t end = slot_end(promote_state.part[i].offset);

	if (i + 1 < promote_state.parts && promote_state.part[i + 1].offset < end)
		return promote_state.part[i + 1].offset;
	return end;
}

/*
 * Slots are used in turn. So a mapping of an old slot that we do not know of shows no other data
 * for a long time.
 */
uint64_t promote_find_slot(void)
{
	for (uint32_t tries = 0; tries < PROMOTE_SLOTS; tries++) {
		uint64_t offset = (promote_state.next_slot % PROMOTE_SLOTS) << PROMOTE_SLOT_SHIFT;
		uint32_t i = promote_part_at(offset);

		promote_state.next_slot++;
		if (promote_slot_is_left(offset))
			continue;
		if (i == promote_state.parts || promote_state.part[i].offset >= slot_end(offset))
			return offset;
	}
	return UINT64_MAX;
}
