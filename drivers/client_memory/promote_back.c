/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What no region needs any more becomes private memory again, wherever the program has it by now:
 * it may have moved it, made it larger, given a part of it away or protected it.
 */
#include "drivers/client_memory/promote_private.h"

/* The piece of `m` that shows something of [from, to) of the file. False: none. */
static bool piece_of(const struct mapping *m, uint64_t from, uint64_t to, struct mapping *piece)
{
	uint64_t end = m->offset + (m->end - m->start);

	if (!promote_is_ours(m) || m->offset >= to || end <= from)
		return false;
	*piece = *m;
	if (m->offset < from) {
		piece->start += from - m->offset;
		piece->offset = from;
	}
	if (end > to)
		piece->end -= end - to;
	return true;
}

static bool turn_piece_back(const struct mapping *piece)
{
	if (!promote_peer_is(piece->start, piece->end))
		return promote_move_out_of_file(piece);
	promote_state.waiting = true;
	return false;
}

/* False: some of it could not be turned back. */
static bool turn_back(uint64_t from, uint64_t to)
{
	uintptr_t at = 0;
	bool done = true;
	int n;

	do {
		n = maps_read(at, UINTPTR_MAX, true, promote_state.found, PROMOTE_RANGES_MAX);
		for (int i = 0; i < n; i++) {
			struct mapping piece;

			if (piece_of(&promote_state.found[i], from, to, &piece))
				done = turn_piece_back(&piece) && done;
		}
		if (n > 0)
			at = promote_state.found[n - 1].end;
	} while (n == (int)PROMOTE_RANGES_MAX);
	return done && n >= 0;
}

/* The last user has gone. True: its slot, or its part of it, is empty. What failed stays a part. */
static bool demote_part(uint32_t i)
{
	uint64_t from = promote_state.part[i].offset, to = promote_reach(i);
	int64_t until = promote_now(), begin = promote_work_now();

	if (!turn_back(from, to))
		return false;
	promote_drop_pages(from, to - from);
	promote_paid(&promote_state.part[i], until, promote_work_now() - begin);
	return true;
}

void promote_release_parts(uint64_t offset, uint64_t length)
{
	uint32_t i;

	/* without room to split, the parts keep their users and the pages stay promoted */
	if (!promote_split_part(offset) || !promote_split_part(offset + length))
		return;
	for (i = promote_part_at(offset);
	     i < promote_state.parts && promote_state.part[i].offset < offset + length;) {
		struct part *p = &promote_state.part[i];

		if (p->users > 0)
			p->users--;
		if (p->users == 0 && demote_part(i))
			promote_remove_part(i);
		else
			i++;
	}
}

void promote_release_waiting(void)
{
	if (!promote_state.waiting)
		return;
	promote_state.waiting = false;
	for (uint32_t i = 0; i < promote_state.parts;) {
		if (promote_state.part[i].users == 0 && demote_part(i))
			promote_remove_part(i);
		else
			i++;
	}
}
