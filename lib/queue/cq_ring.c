/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A push claims a slot (claim.h). Once all slots before a position are written, that position is
 * shown in the shared producer tail, which the program reads.
 *
 * `solicited` holds two positions: the one after the newest solicited completion (low half), and
 * the one up to which take_arming has looked (high half). A push may become visible only when
 * another lcore finishes a later one. The pushing lcore then asks for the arming too early. The
 * lcore that makes the push visible asks afterwards, and learns of the push from this word.
 */
#include "queue/cq_ring.h"

#include <assert.h>
#include <string.h>

#include "queue/claim.h"
#include "queue/ring.h"

void cq_ring_init(struct cq_ring *c, void *memory, struct cq_page *page, uint32_t size,
		  uint32_t capacity)
{
	assert(capacity >= 1 && capacity < size && "one slot of a ring stays free");
	memset(c, 0, sizeof(*c));
	c->shared = memory;
	c->page = page;
	c->size = size;
	c->capacity = capacity;
}

static uint32_t *shared_tail(const struct cq_ring *c, uint32_t offset)
{
	return (uint32_t *)(void *)(c->shared + offset);
}

/* The position up to which the program has polled. */
static uint32_t polled(const struct cq_ring *c)
{
	/* pairs with the consumer's release store: its reads of the slots are done */
	return __atomic_load_n(shared_tail(c, RING_CONSUMER_TAIL), __ATOMIC_ACQUIRE);
}

/* Whether the slot at `position` may be written, because the program has polled what was in it. */
static bool has_room(const struct cq_ring *c, uint32_t position)
{
	return position - polled(c) < c->capacity;
}

static void write_slot(const struct cq_ring *c, uint32_t position, const struct completion *from)
{
	uint8_t *slots = c->shared + RING_SLOTS;

	memcpy(slots + (size_t)(position & (c->size - 1)) * sizeof(*from), from, sizeof(*from));
}

static bool push_alone(struct cq_ring *c, const struct completion *completion)
{
	uint32_t position = claim_position(c->head);

	/* The program's core writes its tail, so a push looks at it only if it has to. */
	if (position - c->taken >= c->capacity) {
		c->taken = polled(c);
		if (position - c->taken >= c->capacity)
			return false;
	}
	write_slot(c, position, completion);
	c->head = position + 1;
	__atomic_store_n(shared_tail(c, RING_PRODUCER_TAIL), position + 1, __ATOMIC_RELEASE);
	return true;
}

/*
 * Claims a slot. False: the ring is full. Lock-free: a try fails only if another lcore's succeeds.
 *
 * Between our look at the head and our look at the program's tail, others may push, and the program
 * may poll what they pushed. The tail is then behind our position, which looks like a full ring.
 * But the head has moved.
 */
static bool reserve(struct cq_ring *c, uint32_t *position)
{
	uint64_t head = __atomic_load_n(&c->head, __ATOMIC_ACQUIRE), again;

	for (;;) {
		*position = claim_position(head);
		if (has_room(c, *position)) {
			if (claim_begin(&c->head, &head))
				return true;
			continue;
		}
		again = __atomic_load_n(&c->head, __ATOMIC_ACQUIRE);
		if (again == head)
			return false;
		head = again;
	}
}

/*
 * A position that take_arming has looked at says nothing any more: it may be so old that a newer
 * one is before it or equal, modulo 2^32.
 */
static void note_solicited(struct cq_ring *c, uint32_t behind)
{
	uint64_t old = __atomic_load_n(&c->solicited, __ATOMIC_RELAXED);
	uint32_t newest, looked_at;

	do {
		newest = claim_position(old);
		looked_at = claim_count(old);
		if (newest == looked_at)
			looked_at = behind - 1;
		else if (!claim_is_behind(newest, behind))
			return;
	} while (!__atomic_compare_exchange_n(&c->solicited, &old, claim_word(behind, looked_at),
					      true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static void finish(struct cq_ring *c)
{
	uint32_t written;

	if (claim_finish(&c->head, &c->tail, &written))
		claim_show(shared_tail(c, RING_PRODUCER_TAIL), written);
}

bool cq_ring_push(struct cq_ring *c, const struct completion *completion)
{
	uint32_t position;

	if (c->one_lcore)
		return push_alone(c, completion);
	if (!reserve(c, &position))
		return false;
	write_slot(c, position, completion);
	if (completion->solicited)
		note_solicited(c, position + 1);
	finish(c);
	return true;
}

/*
 * Whether a solicited completion may have become visible since the last call. Those that are not
 * yet visible are left for a later call. The word knows only the newest one, so the answer may be
 * yes too often. The program then gets an event without a completion, which programs must expect at
 * any time.
 */
static bool look_at_solicited(struct cq_ring *c)
{
	uint64_t old = __atomic_load_n(&c->solicited, __ATOMIC_RELAXED);
	uint32_t newest = claim_position(old), looked_at = claim_count(old), shown;

	if (newest == looked_at)
		return false;
	/* the shared tail, not c->tail: what the program cannot see yet is left for a later call */
	shown = __atomic_load_n(shared_tail(c, RING_PRODUCER_TAIL), __ATOMIC_ACQUIRE);
	if (claim_is_behind(newest, shown))
		shown = newest;
	if (shown == looked_at)
		return false;
	/*
	 * The exchange fails if another lcore has changed the word. That lcore or the next one
	 * looks again.
	 */
	__atomic_compare_exchange_n(&c->solicited, &old, claim_word(newest, shown), false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return true;
}

bool cq_ring_take_arming(struct cq_ring *c, bool solicited)
{
	uint32_t armed;

	if (!c->one_lcore && look_at_solicited(c))
		solicited = true;
	/* the completions are visible before `armed` is read; pairs with cq_ring_arm */
	queue_fence();
	armed = __atomic_load_n(&c->page->armed, __ATOMIC_RELAXED);
	if (armed != CQ_ARMED_NEXT && !(armed == CQ_ARMED_SOLICITED && solicited))
		return false;
	/* Several lcores may see it armed. Only the one that disarms it sends the event. */
	return cq_page_disarm(c->page);
}
