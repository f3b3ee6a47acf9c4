/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Demotion: pages that no region needs any more become private memory again, wherever they are
 * mapped now. The program may have remapped, enlarged, partly unmapped or protected them.
 */
#include "drivers/client_memory/promote_private.h"

/* The piece of `m` that maps part of [from, to) of the file. False: there is none. */
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

/*
 * Demotes without holding threads back. No region has this memory any more, so if the program may
 * not write it, nobody does. `alone`: the slot has no other part. If it has one, the program may
 * have enlarged that part's mapping, and may write the holes of this part through it.
 */
static bool demote_unheld(const struct mapping *piece, bool alone)
{
	return piece->writable ? promote_take_back(piece, !alone) : promote_replace_by_copy(piece);
}

static bool demote_piece(struct mapping *piece, bool alone)
{
	if (!promote_peer_is(piece->start, piece->end)) {
		if (promote_read_marks(piece) &&
		    (promote_pages_out_of_file(piece) || demote_unheld(piece, alone)))
			return true;
		if (promote_is_there(piece))
			return false;
	}
	/* It is peer memory, or the program has mapped other memory there just now. */
	promote_state.waiting = true;
	return false;
}

/* False: some of it could not be demoted. */
static bool demote_range(uint64_t from, uint64_t to, bool alone)
{
	uintptr_t at = 0;
	bool done = true;
	int n;

	do {
		n = maps_read(at, UINTPTR_MAX, false, promote_state.found, LIMIT_PROMOTE_RANGES);
		for (int i = 0; i < n; i++) {
			struct mapping piece;

			if (piece_of(&promote_state.found[i], from, to, &piece))
				done = demote_piece(&piece, alone) && done;
		}
		if (n > 0)
			at = promote_state.found[n - 1].end;
	} while (n == (int)LIMIT_PROMOTE_RANGES);
	return done && n >= 0;
}

static bool same_slot(uint32_t i, uint32_t other)
{
	return other < promote_state.parts &&
	       promote_state.part[i].offset >> PROMOTE_SLOT_SHIFT ==
		       promote_state.part[other].offset >> PROMOTE_SLOT_SHIFT;
}

/* Demotes a part without users. True: the part is empty now. False: it stays. */
static bool demote_part(uint32_t i)
{
	uint64_t from = promote_state.part[i].offset, to = promote_reach(i);
	int64_t until = promote_now(), begin = promote_work_now();
	bool alone = !same_slot(i, i + 1) && (i == 0 || !same_slot(i, i - 1));

	if (!demote_range(from, to, alone))
		return false;
	promote_drop_left(from, to - from);
	promote_paid(&promote_state.part[i], until, promote_work_now() - begin);
	return true;
}

void promote_release_parts(uint64_t offset, uint64_t length)
{
	uint32_t i;

	/* If the table is full, the parts keep their users, and the pages stay promoted. */
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
