/* SPDX-License-Identifier: BSD-3-Clause */
/* Who uses which part of the promoted file. The caller holds the lock. */
#include <string.h>

#include "drivers/client_memory/promote_private.h"

bool promote_insert_part(uint32_t at, struct part p)
{
	if (promote_state.parts == PROMOTE_RANGES_MAX)
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
	behind.offset = offset;
	behind.length = p->offset + p->length - offset;
	if (!promote_insert_part(i + 1, behind))
		return false;
	p->length = offset - p->offset;
	return true;
}

bool promote_use_parts(uint64_t offset, uint64_t length)
{
	if (!promote_split_part(offset) || !promote_split_part(offset + length))
		return false;
	for (uint32_t i = promote_part_at(offset);
	     i < promote_state.parts && promote_state.part[i].offset < offset + length; i++)
		promote_state.part[i].users++;
	return true;
}

uint64_t promote_find_free(uint64_t length)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < promote_state.parts; i++) {
		if (promote_state.part[i].offset - at >= length)
			return at;
		at = promote_state.part[i].offset + promote_state.part[i].length;
	}
	return PROMOTE_FILE_BYTES - at >= length ? at : UINT64_MAX;
}
