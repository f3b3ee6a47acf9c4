/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the engine's side of the rings and for the arena. The other side is hostile:
 * between any two steps of ours it writes any word of the shared memory. The rings stand in memory
 * of exactly their size, so that the sanitizer sees a step outside; slots and counts are checked
 * against the size that the engine chose.
 */
#include "config/limits.h"
#include "input.h"
#include "queue/arena.h"
#include "queue/cq_ring.h"
#include "queue/doorbell.h"
#include "queue/ring.h"
#include "queue/srq_ring.h"

#define SIZE	   8u /* slots */
#define STRIDE	   16u
#define RINGS	   5u
#define HANDLES	   4u
#define RANGES	   24u
#define RANGE_AT   0x5au
#define RANGE_MOST 65536u

enum {
	CONSUMED,
	PRODUCED,
	BELL,
	SRQ,
	CQ
};

struct range {
	uint64_t offset; /* 0: none */
	size_t octets;
};

static uint8_t *shared[RINGS];
static size_t octets[RINGS];
static struct ring_side consumed, produced, bell;
static struct srq_ring srq;
static struct cq_ring cq;
static struct cq_page page;
static uint64_t taken; /* from the SRQ */
static struct srq_ring_found late; /* there; no slot: nothing is found */
static struct arena *arena; /* one for all inputs: each gives back what it took */
static struct range range[RANGES];
static uint8_t filled[RANGE_MOST];
static const uint8_t zeros[RANGE_MOST];

static void make_rings(bool one_lcore)
{
	for (uint32_t i = 0; i < RINGS; i++) {
		octets[i] = ring_bytes(SIZE, i == CQ ? sizeof(struct completion) : STRIDE);
		shared[i] = aligned_alloc(64, octets[i]);
		memset(shared[i], 0, octets[i]);
		ring_format(shared[i], SIZE, i == BELL);
	}
	ring_side_init(&consumed, shared[CONSUMED], SIZE, STRIDE);
	ring_side_init(&produced, shared[PRODUCED], SIZE, STRIDE);
	ring_side_init(&bell, shared[BELL], SIZE, DOORBELL_STRIDE);
	srq_ring_init(&srq, shared[SRQ], SIZE, STRIDE);
	cq_ring_init(&cq, shared[CQ], &page, SIZE, SIZE - 2);
	srq.one_lcore = cq.one_lcore = one_lcore;
	page = (struct cq_page){ 0 };
	taken = 0;
	late.slot = NULL;
}

static bool is_slot(uint32_t ring, const void *slot, uint32_t stride)
{
	uintptr_t at = (uintptr_t)slot - (uintptr_t)shared[ring];

	return at >= RING_SLOTS && at + stride <= octets[ring] && (at - RING_SLOTS) % stride == 0;
}

static void consume(struct input *in)
{
	uint32_t n = ring_readable(&consumed);
	uint8_t copy[STRIDE];

	demand(n < SIZE || n == RING_BROKEN);
	if (n == RING_BROKEN || n == 0)
		return;
	n = 1 + input_8(in) % n;
	for (uint32_t i = 0; i < n; i++) {
		demand(is_slot(CONSUMED, ring_read_slot(&consumed, i), STRIDE));
		memcpy(copy, ring_read_slot(&consumed, i), STRIDE);
	}
	ring_consume(&consumed, n);
}

static void produce(struct input *in)
{
	uint32_t n = ring_writable(&produced);

	demand(n < SIZE || n == RING_BROKEN);
	if (n == RING_BROKEN || n == 0)
		return;
	n = 1 + input_8(in) % n;
	for (uint32_t i = 0; i < n; i++) {
		demand(is_slot(PRODUCED, ring_write_slot(&produced, i), STRIDE));
		memset(ring_write_slot(&produced, i), 1, STRIDE);
	}
	ring_publish(&produced, n);
}

static void take_handles(void)
{
	uint32_t handle[HANDLES + 1] = { [HANDLES] = 0x600d600d };

	demand(doorbell_take(&bell, handle, HANDLES) <= HANDLES);
	demand(handle[HANDLES] == 0x600d600d);
}

static bool find_receive(struct srq_ring_found *f)
{
	demand(srq_ring_waiting(&srq) < SIZE || srq_ring_waiting(&srq) == RING_BROKEN);
	if (srq_ring_find(&srq, f) != SRQ_RING_FOUND)
		return false;
	demand(is_slot(SRQ, f->slot, STRIDE));
	return true;
}

static void take_receive(void)
{
	struct srq_ring_found f;

	if (!find_receive(&f))
		return;
	demand(srq_ring_take(&srq, &f));
	taken++;
}

/* A second lcore is preempted between find and take: it gets what nobody took meanwhile. */
static void take_receive_late(void)
{
	if (srq.one_lcore)
		return;
	if (late.slot == NULL) {
		find_receive(&late);
		return;
	}
	if (srq_ring_take(&srq, &late))
		demand(late.at == taken++);
	else
		demand(late.at != taken);
	late.slot = NULL;
}

static void complete(uint8_t how)
{
	struct completion c = { .wr_id = how, .solicited = how & 1 };

	cq_ring_push(&cq, &c);
	cq_ring_take_arming(&cq, how & 2);
}

/* The other side: one word of one ring, anywhere or where the cursors are. */
static void write_word(struct input *in)
{
	static const uint32_t cursors[] = { 128, 132, 256, 260 };
	uint32_t ring = input_8(in) % RINGS, how = input_8(in), at, value;

	at = how & 0x80 ? input_16(in) % (octets[ring] / 4) * 4 : cursors[how % 4];
	value = how & 0x40 ? input_32(in) : input_8(in);
	if (how & 0x20) { /* near what is there, over the wrap, too */
		uint32_t old;

		memcpy(&old, shared[ring] + at, sizeof(old));
		value = old + (uint32_t)(int8_t)value;
	}
	memcpy(shared[ring] + at, &value, sizeof(value));
}

static void arm(uint8_t how)
{
	if (how < 3)
		cq_ring_arm(&page, how);
	else
		page.armed = how;
}

/* ---- the arena: what is handed out is zero, nobody else's, and inside ---- */

static void give_back(struct range *r)
{
	if (r->offset == 0)
		return;
	memset(filled, RANGE_AT + (int)(r - range), r->octets);
	demand(memcmp(arena_at(arena, r->offset), filled, r->octets) == 0);
	arena_free(arena, r->offset, r->octets);
	r->offset = 0;
}

static void allocate(struct input *in)
{
	struct range *r = &range[input_8(in) % RANGES];
	uint8_t *at;

	give_back(r);
	r->octets = 1 + input_16(in) % (input_8(in) % 16 ? 512 : RANGE_MOST);
	r->offset = arena_allocate(arena, r->octets);
	if (r->offset == 0)
		return;
	demand(r->offset % (r->octets >= 4096 ? 4096 : 64) == 0);
	demand(r->offset >= sizeof(struct client_page));
	demand(r->offset <= LIMIT_ARENA_BYTES - r->octets);
	at = arena_at(arena, r->offset);
	demand(memcmp(at, zeros, r->octets) == 0);
	memset(at, RANGE_AT + (int)(r - range), r->octets);
}

static void step(struct input *in)
{
	uint8_t what = input_8(in);

	switch (what % 12) {
	case 0:
		consume(in);
		break;
	case 1:
		produce(in);
		break;
	case 2:
		take_handles();
		break;
	case 3:
		take_receive();
		break;
	case 4:
		take_receive_late();
		break;
	case 5:
		complete(what >> 4);
		break;
	case 6:
		arm(input_8(in));
		break;
	case 7:
		allocate(in);
		break;
	case 8:
		give_back(&range[input_8(in) % RANGES]);
		break;
	default:
		write_word(in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	if (arena == NULL)
		arena = arena_create_private();
	demand(arena != NULL);
	make_rings(input_8(&in) & 1);
	while (in.left > 0)
		step(&in);
	for (uint32_t i = 0; i < RANGES; i++)
		give_back(&range[i]);
	for (uint32_t i = 0; i < RINGS; i++)
		free(shared[i]);
	return 0;
}
