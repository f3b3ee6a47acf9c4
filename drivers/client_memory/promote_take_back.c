/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes promoted memory private again while other threads write it and none is held back:
 *
 *	1. One system call maps the file's pages privately over the shared mapping. From then on
 *	   the program's writes, and the engine's writes to the program's memory, go to private
 *	   pages, and nobody writes the file.
 *	2. The kernel makes private pages of those that are in the file (MADV_POPULATE_WRITE, Linux
 *	   5.14). No octet changes, and writes of other threads meanwhile are kept.
 *	3. The file's pages are freed; the private ones stay. Holes stay holes, and read as zeros.
 *
 * Before step 1 no engine may map these pages any more, because it would go on writing the file.
 *
 * Where the mapping has no private pages (holes, and what the program discards) it goes on showing
 * its slot of the file. So the slot is never used again (*left*). When the program touches a hole,
 * the kernel first makes a page of the file. It never frees that page, so promote_tidy_left does at
 * the next occasion. If step 2 fails (an older kernel, or memory that may not be written), the
 * file's pages must stay, also for the children that show them (*frozen*).
 */
#include <errno.h>
#include <string.h>

#include "base/memory_call.h"
#include "drivers/client_memory/promote_private.h"

/* ---- slots ---- */

static bool has(const uint64_t *bits, uint64_t offset)
{
	uint64_t slot = offset >> PROMOTE_SLOT_SHIFT;

	return (bits[slot / 64] >> slot % 64 & 1) != 0;
}

static void set(uint64_t *bits, uint64_t offset)
{
	uint64_t slot = offset >> PROMOTE_SLOT_SHIFT;

	bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

bool promote_slot_is_left(uint64_t offset)
{
	return has(promote_state.left, offset);
}

void promote_forget_left(void)
{
	memset(promote_state.left, 0, sizeof(promote_state.left));
	memset(promote_state.frozen, 0, sizeof(promote_state.frozen));
	promote_state.any_left = false;
}

void promote_drop_left(uint64_t offset, uint64_t length)
{
	if (!has(promote_state.frozen, offset))
		promote_drop_pages(offset, length);
}

void promote_tidy_left(void)
{
	const uint64_t slot = UINT64_C(1) << PROMOTE_SLOT_SHIFT;
	uint64_t at = 0, hole;

	if (!promote_state.any_left || !promote_fd_is_ours())
		return;
	while (promote_find_data(&at, &hole, PROMOTE_FILE_BYTES) > 0) {
		at -= at % slot;
		/* not while the slot still has a part that is promoted */
		if (promote_slot_is_left(at) && promote_part_at(at) == promote_part_at(at + slot))
			promote_drop_left(at, slot);
		at += slot;
	}
}

/* ---- pages ---- */

static bool populate(uintptr_t start, uint64_t length)
{
	for (uint32_t tries = 0; tries < LIMIT_POPULATE_TRIES; tries++) {
		if (memory_advise((void *)start, length, MADV_POPULATE_WRITE) == 0)
			return true;
		if (errno != EAGAIN && errno != EINTR)
			return false;
	}
	return false;
}

static bool populate_data(const struct mapping *m)
{
	uint64_t at = m->offset, end = m->offset + (m->end - m->start), hole;
	int found;

	while ((found = promote_find_data(&at, &hole, end)) > 0) {
		if (!populate(m->start + (at - m->offset), hole - at))
			return false;
		at = hole;
	}
	return found == 0;
}

bool promote_is_there(const struct mapping *m)
{
	struct mapping now;

	return maps_read(m->start, m->end, false, &now, 1) == 1 && promote_is_ours(&now) &&
	       now.start <= m->start && now.end >= m->end &&
	       now.offset - now.start == m->offset - m->start;
}

bool promote_take_back(const struct mapping *m, bool holes)
{
	size_t length = m->end - m->start;

	if (!promote_is_there(m) || !promote_map_privately(m))
		return false;
	promote_state.any_left = true;
	set(promote_state.left, m->offset);
	if (!(holes ? populate(m->start, length) : populate_data(m)))
		set(promote_state.frozen, m->offset);
	if (m->marks & MARK_LOCKED)
		memory_lock((void *)m->start, length);
	return true;
}
