/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "link.h"

#define LINE_PS_PER_OCTET 80 /* 100 Gbit/s */
#define LINE_OVERHEAD	  24 /* preamble, FCS, gap */

void link_init(struct link *l, const struct impairment *bad, uint64_t seed)
{
	*l = (struct link){ .bad = *bad, .frees = LINK_FRAMES };
	prng_seed(&l->prng, seed);
	l->frame = malloc(LINK_FRAMES * sizeof(*l->frame));
	l->free = malloc(LINK_FRAMES * sizeof(*l->free));
	l->arrival = malloc(LINK_ARRIVALS * sizeof(*l->arrival));
	l->arrivals.node = malloc(LINK_ARRIVALS * sizeof(struct heap_node *));
	l->arrivals.room = LINK_ARRIVALS;
	if (l->frame == NULL || l->free == NULL || l->arrival == NULL || l->arrivals.node == NULL)
		abort();
	for (uint32_t i = 0; i < LINK_FRAMES; i++)
		l->free[i] = (uint16_t)(LINK_FRAMES - 1 - i);
}

void link_free(struct link *l)
{
	if (l->pcap != NULL)
		fclose(l->pcap);
	free(l->frame);
	free(l->free);
	free(l->arrival);
	free(l->arrivals.node);
}

/* The classic pcap format: microseconds, Ethernet. */
bool link_capture(struct link *l, const char *path)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, accuracy, snap_length, link_type;
	} header = { 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1 };

	l->pcap = fopen(path, "wb");
	return l->pcap != NULL && fwrite(&header, sizeof(header), 1, l->pcap) == 1;
}

static void capture(const struct link *l, const struct frame *f, nanotime t)
{
	const uint32_t record[4] = { (uint32_t)(t / TIME_S), (uint32_t)(t % TIME_S / TIME_US),
				     f->length, f->length };

	fwrite(record, sizeof(record), 1, l->pcap);
	fwrite(f->octets + f->start, f->length, 1, l->pcap);
}

struct frame *link_buffer(struct link *l)
{
	return l->frees == 0 ? NULL : &l->frame[l->free[--l->frees]];
}

void link_return(struct link *l, struct frame *f)
{
	l->free[l->frees++] = (uint16_t)(f - l->frame);
}

void link_taken(struct link *l, struct frame *f)
{
	if (--f->references == 0)
		link_return(l, f);
}

/* An arrival is free: no frame arrives more than twice. */
static struct arrival *new_arrival(struct link *l)
{
	struct arrival *a = l->unused;

	if (a == NULL)
		a = &l->arrival[l->used++];
	else
		l->unused = a->next;
	a->when.position = 0;
	return a;
}

static struct arrival *first_arrival(struct link *l)
{
	struct arrival *a = container_of_type(heap_first(&l->arrivals), struct arrival, when);

	heap_remove(&l->arrivals, &a->when);
	a->next = l->unused;
	l->unused = a;
	return a;
}

static void damage(struct link *l, struct frame *f)
{
	uint32_t bits = prng_between(&l->prng, 1, 8);

	for (uint32_t i = 0; i < bits; i++)
		f->octets[f->start + prng_below(&l->prng, f->length)] ^=
			(uint8_t)(1u << prng_below(&l->prng, 8));
	l->counts.corrupted++;
}

static void schedule(struct link *l, uint32_t from, struct frame *f, nanotime leaves)
{
	nanotime t = leaves + l->bad.delay;
	struct arrival *a = new_arrival(l);

	if (prng_chance(&l->prng, l->bad.reorder)) {
		t += l->bad.delay / 4 + prng_below(&l->prng, (uint32_t)(4 * l->bad.delay + 1000));
		l->counts.reordered++;
	} else {
		t = MAX_OF(t, l->last_arrival[from]);
		l->last_arrival[from] = t;
	}
	f->references++;
	a->frame = f;
	a->to = 1 - from;
	heap_put(&l->arrivals, &a->when, t);
}

void link_send(struct link *l, uint32_t from, struct frame *f, nanotime now)
{
	nanotime *line = &l->line_free_at[from];

	*line = MAX_OF(*line, now) + (f->length + LINE_OVERHEAD) * LINE_PS_PER_OCTET / 1000;
	l->counts.sent++;
	l->counts.octets += f->length;
	f->references = 0;
	if (prng_chance(&l->prng, l->bad.loss)) {
		l->counts.lost++;
		link_return(l, f);
		return;
	}
	if (prng_chance(&l->prng, l->bad.corrupt))
		damage(l, f);
	if (l->pcap != NULL)
		capture(l, f, *line);
	schedule(l, from, f, *line);
	if (prng_chance(&l->prng, l->bad.duplicate) && l->arrivals.count < LINK_ARRIVALS - 1) {
		l->counts.duplicated++;
		schedule(l, from, f, *line + prng_below(&l->prng, 20000));
	}
}

struct frame *link_take(struct link *l, nanotime now, uint32_t *to)
{
	struct arrival *a;

	if (link_next(l) > now)
		return NULL;
	a = first_arrival(l);
	*to = a->to;
	l->counts.arrived++;
	return a->frame;
}
