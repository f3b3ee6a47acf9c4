/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Head and tail are a position and a count of pushes in one 64-bit word. A push begins by moving
 * head (position + 1, count + 1) and ends by counting one up in tail; the push that makes the
 * counts equal is the last one under way and takes head's position over into tail: all slots
 * before it are written. It then shows that position in the shared producer tail.
 *
 * Two lcores may do so one after the other and reach the shared word in the other order, so it is
 * only ever moved forward. The program reads it and never writes it: a CAS that fails was beaten
 * by another lcore, of which fewer than LIMIT_LCORES can be behind us, so the tries are bounded;
 * a program that writes the word all the same loses its own completions.
 *
 * `solicited` keeps two positions: behind the newest solicited completion (low half), and up to
 * where they have been looked at (high half). A push that is finished by another lcore's later one
 * is not visible when its own lcore asks for the arming; the lcore that makes it visible asks
 * after that, and finds the position here.
 */
#include "queue/cq_ring.h"

#include <assert.h>
#include <string.h>

#include "config/limits.h"
#include "queue/ring.h"

static uint64_t word_of(uint32_t position, uint32_t count)
{
	return (uint64_t)count << 32 | position;
}

static uint32_t position_of(uint64_t word)
{
	return (uint32_t)word;
}

static uint32_t count_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static bool is_behind(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

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

/* Whether the slot at `position` may be written: the program has taken what was in it. */
static bool has_room(const struct cq_ring *c, uint32_t position)
{
	/* pairs with the consumer's release store: its reads of the slot are done */
	uint32_t taken = __atomic_load_n(shared_tail(c, RING_CONSUMER_TAIL), __ATOMIC_ACQUIRE);

	return position - taken < c->capacity;
}

static void write_slot(const struct cq_ring *c, uint32_t position, const struct completion *from)
{
	uint8_t *slots = c->shared + RING_SLOTS;

	memcpy(slots + (size_t)(position & (c->size - 1)) * sizeof(*from), from, sizeof(*from));
}

static bool push_alone(struct cq_ring *c, const struct completion *completion)
{
	uint32_t position = position_of(c->head);

	if (!has_room(c, position))
		return false;
	write_slot(c, position, completion);
	c->head = position + 1;
	__atomic_store_n(shared_tail(c, RING_PRODUCER_TAIL), position + 1, __ATOMIC_RELEASE);
	return true;
}

/* Moves head by one; false: no room. Lock-free: a failed try is another lcore's success. */
static bool reserve(struct cq_ring *c, uint32_t *position)
{
	uint64_t head = __atomic_load_n(&c->head, __ATOMIC_ACQUIRE);

	do {
		*position = position_of(head);
		if (!has_room(c, *position))
			return false;
	} while (!__atomic_compare_exchange_n(&c->head, &head,
					      word_of(*position + 1, count_of(head) + 1), true,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	return true;
}

static void note_solicited(struct cq_ring *c, uint32_t behind)
{
	uint64_t old = __atomic_load_n(&c->solicited, __ATOMIC_RELAXED);

	while (is_behind(position_of(old), behind) &&
	       !__atomic_compare_exchange_n(&c->solicited, &old, word_of(behind, count_of(old)),
					    true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void show(struct cq_ring *c, uint32_t position)
{
	uint32_t *tail = shared_tail(c, RING_PRODUCER_TAIL);
	uint32_t shown = __atomic_load_n(tail, __ATOMIC_RELAXED);

	for (uint32_t tries = 0; tries <= LIMIT_LCORES && is_behind(shown, position); tries++) {
		/* release: pairs with the program's acquire load; all slots before it are written */
		if (__atomic_compare_exchange_n(tail, &shown, position, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return;
	}
}

static void finish(struct cq_ring *c)
{
	uint64_t tail = __atomic_load_n(&c->tail, __ATOMIC_ACQUIRE);
	uint64_t next, head;

	/* release: our slot is written; acquire: so are those of the pushes that finished before */
	do {
		head = __atomic_load_n(&c->head, __ATOMIC_ACQUIRE);
		next = word_of(position_of(tail), count_of(tail) + 1);
		if (count_of(next) == count_of(head))
			next = head;
	} while (!__atomic_compare_exchange_n(&c->tail, &tail, next, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	if (position_of(next) != position_of(tail))
		show(c, position_of(next));
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
 * Whether a solicited completion may have become visible that nobody has looked at. Those beyond
 * the visible position stay to be looked at. An older one can hide behind the newest: then this
 * says yes too often, and the program sees an event without a completion, as it may at any time.
 */
static bool look_at_solicited(struct cq_ring *c)
{
	uint64_t old = __atomic_load_n(&c->solicited, __ATOMIC_RELAXED);
	uint32_t newest = position_of(old), looked_at = count_of(old), shown;

	if (newest == looked_at)
		return false;
	/* not c->tail: what the program cannot see yet must be looked at again */
	shown = __atomic_load_n(shared_tail(c, RING_PRODUCER_TAIL), __ATOMIC_ACQUIRE);
	if (is_behind(newest, shown))
		shown = newest;
	if (shown == looked_at)
		return false;
	/* a failure means that another lcore noted or looked: it stays for that one or the next */
	__atomic_compare_exchange_n(&c->solicited, &old, word_of(newest, shown), false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return true;
}

bool cq_ring_take_arming(struct cq_ring *c, bool solicited)
{
	uint32_t armed;

	if (!c->one_lcore && look_at_solicited(c))
		solicited = true;
	queue_fence(); /* what is shown is visible before `armed` is read; see cq_ring_arm */
	armed = __atomic_load_n(&c->page->armed, __ATOMIC_RELAXED);
	if (armed != CQ_ARMED_NEXT && !(armed == CQ_ARMED_SOLICITED && solicited))
		return false;
	/* several lcores may see it; the one that takes it sends the event */
	return __atomic_exchange_n(&c->page->armed, CQ_NOT_ARMED, __ATOMIC_SEQ_CST) != CQ_NOT_ARMED;
}
