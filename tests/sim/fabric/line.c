/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "line.h"

static void depart(struct event *e, struct fabric *f);

static void arrive(struct event *e, struct fabric *f)
{
	struct parcel *p = container_of_type(e, struct parcel, arrival);

	p->to->take(p->to, f, p);
}

void line_init(struct line *l, const struct line_config *is, struct taker *to,
	       struct buffer *shared)
{
	*l = (struct line){ .is = *is, .to = to, .shared = shared, .departure.happen = depart };
	l->last = &l->first;
}

nanotime line_time(const struct line *l, uint64_t octets)
{
	return (nanotime)((double)(octets * 8) * 1e9 / (double)l->is.rate);
}

static void depart_next(struct line *l, struct fabric *f)
{
	if (l->first != NULL)
		fabric_at(f, &l->departure, f->now + line_time(l, l->first->length + LINE_GAP));
}

static bool has_room(const struct line *l, uint32_t octets)
{
	if (l->is.room != LINE_ENDLESS && l->octets + octets > l->is.room)
		return false;
	return l->shared == NULL || l->shared->used + octets <= l->shared->room;
}

bool line_put(struct line *l, struct fabric *f, struct parcel *p)
{
	if (!has_room(l, p->length)) {
		l->counts.dropped++;
		parcel_free(f, p);
		return false;
	}
	if (l->octets > l->is.ecn && parcel_mark(p))
		l->counts.marked++;
	p->next = NULL;
	*l->last = p;
	l->last = &p->next;
	l->frames++;
	l->octets += p->length;
	l->counts.longest = MAX_OF(l->counts.longest, l->octets);
	if (l->shared != NULL)
		l->shared->used += p->length;
	if (l->first == p)
		depart_next(l, f);
	return true;
}

/* The cable's own part: its delay, its losses, and frames that arrive late. */
static void travel(struct line *l, struct fabric *f, struct parcel *p)
{
	nanotime at = f->now + l->is.delay;

	if (prng_chance(&f->prng, l->is.loss)) {
		l->counts.lost++;
		parcel_free(f, p);
		return;
	}
	if (prng_chance(&f->prng, l->is.reorder)) {
		l->counts.reordered++;
		/* the time of half a frame more than that many frames take */
		at += line_time(l, p->length + LINE_GAP) *
		      (2 * prng_between(&f->prng, 1, l->is.places) + 1) / 2;
	}
	p->to = l->to;
	p->arrival.happen = arrive;
	fabric_at(f, &p->arrival, at);
}

static void depart(struct event *e, struct fabric *f)
{
	struct line *l = container_of_type(e, struct line, departure);
	struct parcel *p = l->first;

	l->first = p->next;
	if (l->first == NULL)
		l->last = &l->first;
	l->frames--;
	l->octets -= p->length;
	if (l->shared != NULL)
		l->shared->used -= p->length;
	l->counts.frames++;
	l->counts.octets += p->length;
	travel(l, f, p);
	depart_next(l, f);
	if (l->room_made != NULL)
		fabric_at(f, l->room_made, f->now);
}
