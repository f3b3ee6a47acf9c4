/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "fabric.h"

#define EVENTS_FIRST  1024u
#define IPV4_AT	      14u
#define IPV4_LENGTH   20u
#define IPV4_TOS      (IPV4_AT + 1)
#define IPV4_CHECKSUM (IPV4_AT + 10)
#define IPV4_SOURCE   (IPV4_AT + 12)
#define IPV4_TARGET   (IPV4_AT + 16)

void fabric_init(struct fabric *f, uint64_t seed)
{
	*f = (struct fabric){ .events.room = EVENTS_FIRST };
	prng_seed(&f->prng, seed);
	f->events.node = malloc(EVENTS_FIRST * sizeof(struct heap_node *));
	if (f->events.node == NULL)
		abort();
}

void fabric_free(struct fabric *f)
{
	struct parcel *p;

	while ((p = f->made) != NULL) {
		f->made = p->made_before;
		free(p);
	}
	free(f->events.node);
}

static void make_room(struct heap *h)
{
	if (h->count < h->room)
		return;
	h->room *= 2;
	h->node = realloc(h->node, h->room * sizeof(struct heap_node *));
	if (h->node == NULL)
		abort();
}

void fabric_at(struct fabric *f, struct event *e, nanotime at)
{
	if (heap_holds(&e->when)) {
		if (e->when.at <= at)
			return;
		heap_remove(&f->events, &e->when);
	}
	make_room(&f->events);
	heap_put(&f->events, &e->when, MAX_OF(at, f->now));
}

bool fabric_step(struct fabric *f, nanotime end)
{
	struct event *e;

	if (heap_next(&f->events) > end) {
		f->now = MAX_OF(f->now, end == TIME_NEVER ? f->now : end);
		return false;
	}
	e = container_of_type(heap_first(&f->events), struct event, when);
	f->now = e->when.at;
	heap_remove(&f->events, &e->when);
	e->happen(e, f);
	return true;
}

struct parcel *parcel_new(struct fabric *f)
{
	struct parcel *p = f->unused;

	if (p != NULL) {
		f->unused = p->next;
	} else {
		p = malloc(sizeof(*p));
		if (p == NULL)
			abort();
		p->made_before = f->made;
		f->made = p;
	}
	p->arrival = (struct event){ 0 };
	p->next = NULL;
	return p;
}

void parcel_free(struct fabric *f, struct parcel *p)
{
	p->next = f->unused;
	f->unused = p;
}

uint32_t parcel_host(const struct parcel *p, bool source)
{
	return load_be16(p->octets + p->start + (source ? IPV4_SOURCE : IPV4_TARGET) + 2) - 1u;
}

static uint16_t checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < IPV4_LENGTH; i += 2)
		sum += load_be16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

bool parcel_mark(struct parcel *p)
{
	uint8_t *frame = p->octets + p->start;

	if ((frame[IPV4_TOS] & 3) == 0)
		return false;
	frame[IPV4_TOS] |= 3;
	store_be16(frame + IPV4_CHECKSUM, 0);
	store_be16(frame + IPV4_CHECKSUM, checksum(frame + IPV4_AT));
	return true;
}
