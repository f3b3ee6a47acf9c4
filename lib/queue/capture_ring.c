/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/capture_ring.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"

static_assert(sizeof(struct capture_page) <= CAPTURE_PAGE_OCTETS,
	      "the page has room for all rings");

void capture_ring_init(struct capture_ring *r, void *memory, uint32_t index, uint32_t size)
{
	*r = (struct capture_ring){
		.shared = &((struct capture_page *)memory)->ring[index],
		.octets = (uint8_t *)memory + CAPTURE_PAGE_OCTETS + (size_t)index * size,
		.size = size,
	};
}

static void put(struct capture_ring *r, const void *octets, uint32_t n)
{
	uint32_t at = (uint32_t)r->at & (r->size - 1);
	uint32_t first = MIN_OF(n, r->size - at);

	memcpy(r->octets + at, octets, first);
	memcpy(r->octets, (const uint8_t *)octets + first, n - first);
	r->at += n;
}

bool capture_ring_begin(struct capture_ring *r, const struct capture_record *record)
{
	uint64_t need = sizeof(*record) + round_up(record->length, 8);
	uint64_t used = r->head - __atomic_load_n(&r->shared->tail, __ATOMIC_ACQUIRE);

	if (used > r->size || r->size - used < need) {
		__atomic_store_n(&r->shared->lost, ++r->lost, __ATOMIC_RELAXED);
		return false;
	}
	r->at = r->head;
	put(r, record, sizeof(*record));
	return true;
}

void capture_ring_append(struct capture_ring *r, const void *octets, uint32_t n)
{
	put(r, octets, n);
}

void capture_ring_end(struct capture_ring *r)
{
	r->head = round_up(r->at, 8);
	__atomic_store_n(&r->shared->head, r->head, __ATOMIC_RELEASE);
}
