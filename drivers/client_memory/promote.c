/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides which pages of a region are promoted, and counts the regions that use them. */
#include "drivers/client_memory/promote.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "queue/cancel.h"
#include "drivers/client_memory/promote_private.h"

/* The promotion of one region. */
struct promotion {
	uintptr_t region, region_end;
	uintptr_t from, to; /* the pages that it overlaps ... */
	uintptr_t whole_from, whole_to; /* ... and those that may be promoted for it */
	int64_t begin; /* when the work for the next part began */
	bool may_promote; /* false: use only memory that is promoted already */
	struct mr_backing *backing;
	uint32_t count, max;
};

/* Names, in the region's backings, its part of these pages, which are in the file. */
static void add_backing(struct promotion *g, const struct mapping *m, uint64_t offset)
{
	struct mr_backing *last = g->count > 0 ? &g->backing[g->count - 1] : NULL;
	uintptr_t start = m->start < g->region ? g->region : m->start;
	uintptr_t end = m->end > g->region_end ? g->region_end : m->end;

	offset += start - m->start;
	if (last != NULL && last->offset + last->length == start - g->region &&
	    last->file_offset + last->length == offset) {
		last->length += end - start;
		return;
	}
	g->backing[g->count++] = (struct mr_backing){
		.offset = start - g->region,
		.length = end - start,
		.file_offset = offset,
		.fd = BACKING_PROMOTED,
		.writable = 1,
	};
}

/*
 * Promotes a part. Records it first, because a part that cannot be recorded must not be promoted.
 */
static bool promote_part(struct promotion *g, const struct mapping *m, uint64_t *offset)
{
	struct part p = {
		.length = m->end - m->start,
		.users = 1,
		.region_start = g->from,
		.region_end = g->to,
		.home_start = m->start,
		.home_end = m->end,
	};
	uint32_t i;

	p.offset = promote_find_slot();
	if (p.offset == UINT64_MAX || !promote_insert_part(promote_part_at(p.offset), p))
		return false;
	i = promote_part_at(p.offset);
	if (!promote_pages_into_file(m, p.offset)) {
		promote_remove_part(i);
		promote_drop_pages(p.offset, p.length);
		return false;
	}
	promote_state.part[i].promoted_at = promote_now();
	promote_state.part[i].took = promote_work_now() - g->begin;
	g->begin += promote_state.part[i].took;
	*offset = p.offset;
	return true;
}

static void promote_piece(struct promotion *g, const struct mapping *m)
{
	uint64_t offset;

	if (g->count < g->max && promote_allowed(m) && promote_part(g, m, &offset))
		add_backing(g, m, offset);
}

/* Promotes private memory, except what the engine accesses as peer memory for other regions. */
static void promote_private(struct promotion *g, const struct mapping *m)
{
	struct mapping piece = *m;
	uintptr_t at = m->start < g->whole_from ? g->whole_from : m->start;
	uintptr_t end = m->end > g->whole_to ? g->whole_to : m->end;

	for (; at < end; at = piece.end) {
		piece.start = promote_peer_behind(at);
		if (piece.start >= end)
			return;
		piece.end = promote_peer_next(piece.start, end);
		promote_piece(g, &piece);
	}
}

static void promote_mapping(struct promotion *g, const struct mapping *m)
{
	if (!promote_is_ours(m)) {
		if (g->may_promote)
			promote_private(g, m);
		return;
	}
	if (promote_use_parts(m->offset, m->end - m->start))
		add_backing(g, m, m->offset);
}

/* The part of the mapping in [from, to). */
static struct mapping clip(const struct mapping *m, uintptr_t from, uintptr_t to)
{
	struct mapping c = *m;

	if (c.start < from) {
		c.offset += from - c.start;
		c.start = from;
	}
	if (c.end > to)
		c.end = to;
	return c;
}

/* The caller's signal mask and cancellation state. */
struct interruptions {
	sigset_t signals;
	int cancel;
};

static void enter(struct interruptions *old)
{
	sigset_t all;

	sigfillset(&all);
	old->cancel = cancel_off();
	pthread_sigmask(SIG_SETMASK, &all, &old->signals);
	pthread_mutex_lock(&promote_state.lock);
}

static void leave(const struct interruptions *old)
{
	pthread_mutex_unlock(&promote_state.lock);
	pthread_sigmask(SIG_SETMASK, &old->signals, NULL);
	cancel_restore(old->cancel);
}

int promote_file(void)
{
	struct interruptions old;
	int fd;

	enter(&old);
	fd = promote_have_file() ? promote_state.fd : -1;
	leave(&old);
	return fd;
}

/*
 * The first small regions are promoted, because regions that stay are registered early. Later small
 * regions never are.
 */
static bool is_large_enough(size_t length)
{
	if (length >= LIMIT_PROMOTE_SMALL)
		return true;
	if (promote_state.small == LIMIT_PROMOTE_SMALLS)
		return false;
	promote_state.small++;
	return true;
}

/* Whether some of these pages may have been promoted for another region. */
static bool may_be_there(uintptr_t from, uintptr_t to)
{
	for (uint32_t i = 0; i < promote_state.parts; i++)
		if (promote_state.part[i].home_start < to && promote_state.part[i].home_end > from)
			return true;
	return false;
}

static void promote(struct promotion *g, size_t length)
{
	int n = 0;

	g->begin = promote_work_now();
	g->may_promote =
		!promote_peer_unknown() && promote_pays(g->from, g->to) && is_large_enough(length);
	if (g->may_promote || may_be_there(g->from, g->to))
		n = maps_read(g->from, g->to, g->may_promote, promote_state.found,
			      LIMIT_PROMOTE_RANGES);
	if (g->may_promote)
		promote_looked(g->begin);
	for (int i = 0; i < n && g->count < g->max; i++) {
		struct mapping m = clip(&promote_state.found[i], g->from, g->to);

		promote_mapping(g, &m);
	}
}

static uintptr_t page_down(uintptr_t at)
{
	return at & ~(PAGE - 1);
}

static uint32_t promote_some(const struct promote_region *r, uint32_t max)
{
	uintptr_t end = r->start + r->length;
	struct promotion g = {
		.region = r->start,
		.region_end = end,
		.from = page_down(r->start),
		.to = page_down(end + PAGE - 1),
		.whole_from = page_down(r->start + PAGE - 1),
		.whole_to = page_down(end),
		.backing = r->backing,
		.max = max,
	};

	if (r->length == 0 || r->length > LIMIT_PROMOTE_LENGTH || max == 0 ||
	    !promote_have_file() || !promote_may_write())
		return 0;
	if (promote_owns_edges(r->start, r->length)) {
		g.whole_from = g.from;
		g.whole_to = g.to;
	}
	promote(&g, r->length);
	return g.count;
}

/* Uses are counted for whole pages. */
static void release_pages(uint64_t from, uint64_t to)
{
	from = from & ~(uint64_t)(PAGE - 1);
	to = (to + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	promote_release_parts(from, to - from);
}

static void release(const struct mr_backing *backing, uint32_t count)
{
	for (uint32_t i = 0; promote_state.fd >= 0 && i < count; i++)
		release_pages(backing[i].file_offset, backing[i].file_offset + backing[i].length);
}

void promote_enter(struct promote_region *r, uint32_t max, bool wanted)
{
	struct interruptions old;

	enter(&old);
	promote_tidy_left();
	r->count = wanted ? promote_some(r, max) : 0;
	r->leaves = promote_state.leaves;
	promote_peer_enter(r);
	leave(&old);
}

void promote_leave(const struct promote_region *r)
{
	struct interruptions old;

	enter(&old);
	promote_peer_leave(r);
	release(r->backing, r->count);
	promote_release_waiting();
	promote_tidy_left();
	leave(&old);
}

uint32_t promote_range(void *addr, size_t length, struct mr_backing *backing, uint32_t max)
{
	struct promote_region r = { (uintptr_t)addr, length, .backing = backing };
	struct interruptions old;
	uint32_t count;

	enter(&old);
	count = promote_some(&r, max);
	leave(&old);
	return count;
}

void promote_release(const struct mr_backing *backing, uint32_t count)
{
	struct interruptions old;

	enter(&old);
	release(backing, count);
	leave(&old);
}
