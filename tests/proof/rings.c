/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's side of rings whose other side writes any word at any time. A ring ends where its memory
 * ends. Every size up to that of the largest ring of requests, every place of the cursor.
 */
#define PROOF_HOSTILE
#include "stub.h"

#include "config/limits.h"
#include "base/bits.h"
#include "queue/doorbell.h"

#include "proof.h"

#define STRIDE 64u
#define MOST   32768u /* slots: LIMIT_QP_WR and one that stays free, rounded up */

static_assert(MOST >= 2 * LIMIT_QP_WR, "every ring of requests is tried");

static uint8_t memory[RING_SLOTS + MOST * STRIDE] __attribute__((aligned(64)));

static struct ring_side side_of(uint32_t slots, uint32_t stride)
{
	struct ring_side s = { .size = slots, .stride = stride, .cursor = any_word() };

	s.shared = memory + sizeof(memory) - RING_SLOTS - (size_t)slots * stride;
	s.slots = s.shared + RING_SLOTS;
	return s;
}

/* Slots that are read or written are inside the ring, whatever the tails are. */
void any_ring(void)
{
	for (uint32_t slots = 2; slots <= MOST; slots *= 2) {
		struct ring_side s = side_of(slots, STRIDE);
		uint32_t ready = ring_readable(&s), room = ring_writable(&s);
		const uint8_t *from = ring_read_slot(&s, any_word());
		uint8_t *to = ring_write_slot(&s, any_word());

		//@ assert ready: ready < slots || ready == RING_BROKEN;
		//@ assert room: room < slots || room == RING_BROKEN;
		//@ assert from: \valid_read(from + (0 .. STRIDE - 1)) && from >= s.slots;
		//@ assert to: \valid(to + (0 .. STRIDE - 1)) && to >= s.slots;
		ring_consume(&s, any_word());
		ring_publish(&s, any_word());
	}
	PROVED;
}

/* As many handles as there is room for, from inside the ring. */
void any_doorbell(void)
{
	static uint32_t handles[64];
	struct ring_side s = side_of(DOORBELL_SLOTS, DOORBELL_STRIDE);
	uint32_t taken = doorbell_take(&s, handles, ARRAY_SIZE(handles));

	//@ assert taken: taken <= 64;
	PROVED;
}
