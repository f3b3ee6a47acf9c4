/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of memory that the engine accesses as peer memory for some region. During promotion and
 * demotion such copies fail (Linux: EIO), and the program's requests with them. So these pages are
 * neither promoted nor demoted until those regions are gone.
 */
#include <string.h>

#include "drivers/client_memory/promote_private.h"

/* Sorted, not overlapping. Neighbours with the same number of users are merged. */
static struct {
	uint32_t count;
	struct peer_range {
		uintptr_t start, end;
		uint32_t users;
	} range[LIMIT_PROMOTE_PEERS];
	/* regions that found the table full; while there are any, nothing is promoted or demoted */
	uint32_t unknown;
} peers;

/* The first range that ends after `at`. */
static uint32_t peer_at(uintptr_t at)
{
	uint32_t low = 0, high = peers.count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (peers.range[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool insert(uint32_t i, uintptr_t start, uintptr_t end, uint32_t users)
{
	if (peers.count == LIMIT_PROMOTE_PEERS)
		return false;
	memmove(&peers.range[i + 1], &peers.range[i], (peers.count - i) * sizeof(peers.range[0]));
	peers.range[i] = (struct peer_range){ start, end, users };
	peers.count++;
	return true;
}

static void drop(uint32_t i)
{
	peers.count--;
	memmove(&peers.range[i], &peers.range[i + 1], (peers.count - i) * sizeof(peers.range[0]));
}

static bool split(uintptr_t at)
{
	uint32_t i = peer_at(at);
	struct peer_range *r = &peers.range[i];

	if (i == peers.count || r->start >= at)
		return true;
	if (!insert(i + 1, at, r->end, r->users))
		return false;
	r->end = at;
	return true;
}

/* Drops unused ranges and merges neighbours after a change to [start, end). */
static void tidy(uintptr_t start, uintptr_t end)
{
	uint32_t i = peer_at(start > 0 ? start - 1 : 0);

	while (i < peers.count && peers.range[i].start <= end) {
		struct peer_range *r = &peers.range[i];

		if (r->users == 0) {
			drop(i);
		} else if (i + 1 < peers.count && r->end == r[1].start && r->users == r[1].users) {
			r->end = r[1].end;
			drop(i + 1);
		} else {
			i++;
		}
	}
}

/* Counts one user less for all ranges in [start, end). */
static void leave(uintptr_t start, uintptr_t end)
{
	for (uint32_t i = peer_at(start); i < peers.count && peers.range[i].start < end; i++)
		peers.range[i].users--;
	tidy(start, end);
}

static bool enter(uintptr_t start, uintptr_t end)
{
	uintptr_t at = start;
	bool room = split(start) && split(end);

	while (room && at < end) {
		uint32_t i = peer_at(at);
		uintptr_t next =
			i < peers.count && peers.range[i].start < end ? peers.range[i].start : end;

		if (next > at)
			room = insert(i, at, next, 0);
		if (room) {
			peers.range[i].users++;
			at = peers.range[i].end;
		}
	}
	if (!room)
		leave(start, at);
	else
		tidy(start, end);
	return room;
}

static bool exit_range(uintptr_t start, uintptr_t end)
{
	/* If the table is too full to split, the range stays, and its pages are never promoted. */
	if (split(start) && split(end))
		leave(start, end);
	return true;
}

static uintptr_t page_up(uintptr_t at)
{
	return at > UINTPTR_MAX - PAGE ? UINTPTR_MAX - PAGE + 1 : (at + PAGE - 1) & ~(PAGE - 1);
}

/*
 * Calls `one` for the pages of the region that are in none of its backings, piece by piece. Stops
 * after `most` pieces or when a call fails. Returns for how many pieces it succeeded.
 */
static uint32_t each_rest(const struct promote_region *r, uint32_t most,
			  bool (*one)(uintptr_t start, uintptr_t end))
{
	uintptr_t at = r->start & ~(PAGE - 1), end;
	uint32_t done = 0;

	for (uint32_t i = 0; i <= r->count && done < most; i++) {
		/*
		 * NULL: only the end of the region follows; `backing` is NULL if the region has
		 * none
		 */
		const struct mr_backing *b = i < r->count ? &r->backing[i] : NULL;

		end = b != NULL ? (r->start + b->offset) & ~(PAGE - 1)
				: page_up(r->start + r->length);
		if (end > at) {
			if (!one(at, end))
				return done;
			done++;
		}
		if (b != NULL)
			at = page_up(r->start + b->offset + b->length);
	}
	return done;
}

static bool always(uintptr_t start, uintptr_t end)
{
	return true;
}

void promote_peer_enter(struct promote_region *r)
{
	uint32_t pieces = each_rest(r, UINT32_MAX, always);
	uint32_t entered = each_rest(r, pieces, enter);

	r->known = entered == pieces;
	if (r->known)
		return;
	each_rest(r, entered, exit_range);
	peers.unknown++;
}

void promote_peer_leave(const struct promote_region *r)
{
	if (r->known)
		each_rest(r, UINT32_MAX, exit_range);
	else
		peers.unknown--;
}

bool promote_peer_is(uintptr_t start, uintptr_t end)
{
	uint32_t i = peer_at(start);

	return peers.unknown > 0 || (i < peers.count && peers.range[i].start < end);
}

bool promote_peer_unknown(void)
{
	return peers.unknown > 0;
}

uintptr_t promote_peer_behind(uintptr_t at)
{
	for (uint32_t i = peer_at(at); i < peers.count && peers.range[i].start <= at; i++)
		at = peers.range[i].end;
	return at;
}

uintptr_t promote_peer_next(uintptr_t at, uintptr_t end)
{
	uint32_t i = peer_at(at);

	return i < peers.count && peers.range[i].start < end ? peers.range[i].start : end;
}

void promote_peer_forget(void)
{
	peers.count = peers.unknown = 0;
}
