/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/bits.h"
#include "queue/capture_ring.h"

void capture_reader_init(struct capture_reader *r, void *memory, uint32_t index, uint32_t size)
{
	*r = (struct capture_reader){
		.shared = &((struct capture_page *)memory)->ring[index],
		.octets = (const uint8_t *)memory + CAPTURE_PAGE_OCTETS + (size_t)index * size,
		.size = size,
	};
}

static void get(const struct capture_reader *r, uint64_t from, void *to, uint32_t n)
{
	uint32_t at = (uint32_t)from & (r->size - 1);
	uint32_t first = MIN_OF(n, r->size - at);

	memcpy(to, r->octets + at, first);
	memcpy((uint8_t *)to + first, r->octets, n - first);
}

bool capture_reader_peek(const struct capture_reader *r, struct capture_record *record)
{
	if (__atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE) == r->tail)
		return false;
	get(r, r->tail, record, sizeof(*record));
	return true;
}

void capture_reader_take(struct capture_reader *r, const struct capture_record *record, void *to,
			 uint32_t room)
{
	get(r, r->tail + sizeof(*record), to, MIN_OF(record->length, room));
	r->tail += sizeof(*record) + round_up(record->length, 8);
	__atomic_store_n(&r->shared->tail, r->tail, __ATOMIC_RELEASE);
}

uint64_t capture_reader_lost(const struct capture_reader *r)
{
	return __atomic_load_n(&r->shared->lost, __ATOMIC_RELAXED);
}
