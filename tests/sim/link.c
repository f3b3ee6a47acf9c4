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
	l->heap = malloc(LINK_ARRIVALS * sizeof(*l->heap));
	if (l->frame == NULL || l->free == NULL || l->heap == NULL)
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
	free(l->heap);
}

/* The classic format: microseconds, Ethernet. */
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

static bool earlier(const struct arrival *a, const struct arrival *b)
{
	return a->time != b->time ? a->time < b->time : (int32_t)(a->order - b->order) < 0;
}

static void heap_put(struct link *l, struct arrival a)
{
	uint32_t i = l->arrivals++;

	for (; i > 0 && earlier(&a, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
		l->heap[i] = l->heap[(i - 1) / 2];
	l->heap[i] = a;
}

static struct arrival heap_take(struct link *l)
{
	struct arrival top = l->heap[0], last = l->heap[--l->arrivals];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= l->arrivals)
			break;
		if (child + 1 < l->arrivals && earlier(&l->heap[child + 1], &l->heap[child]))
			child++;
		if (!earlier(&l->heap[child], &last))
			break;
		l->heap[i] = l->heap[child];
		i = child;
	}
	l->heap[i] = last;
	return top;
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

	if (prng_chance(&l->prng, l->bad.reorder)) {
		t += l->bad.delay / 4 + prng_below(&l->prng, (uint32_t)(4 * l->bad.delay + 1000));
		l->counts.reordered++;
	} else {
		t = MAX_OF(t, l->last_arrival[from]);
		l->last_arrival[from] = t;
	}
	f->references++;
	heap_put(l, (struct arrival){ .time = t,
				      .order = l->order++,
				      .frame = (uint16_t)(f - l->frame),
				      .to = (uint16_t)(1 - from) });
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
	if (prng_chance(&l->prng, l->bad.duplicate) && l->arrivals < LINK_ARRIVALS - 1) {
		l->counts.duplicated++;
		schedule(l, from, f, *line + prng_below(&l->prng, 20000));
	}
}

struct frame *link_take(struct link *l, nanotime now, uint32_t *to)
{
	struct arrival a;

	if (link_next(l) > now)
		return NULL;
	a = heap_take(l);
	*to = a.to;
	l->counts.arrived++;
	return &l->frame[a.frame];
}
