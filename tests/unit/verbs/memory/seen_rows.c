/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the table in docs/memory.md, with the same names: what the program does to its memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seen.h"

uint8_t *seen_page(uint8_t *p, size_t i)
{
	return p + i * SEEN_PAGE;
}

const char *seen_result(int value)
{
	return value == 0 ? "0" : errno == EINVAL ? "EINVAL" : "another error";
}

uint8_t *seen_grow_elsewhere(struct seen *s, size_t to)
{
	uint8_t *q = mremap(s->p, SEEN_OCTETS, to, MREMAP_MAYMOVE);

	seen_note(s, "%s", q != MAP_FAILED && q != s->p ? "moved" : "failed");
	return q;
}

void seen_map_other(struct seen *s)
{
	mmap(s->p, SEEN_OCTETS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	     0);
}

/* ---- mremap ---- */

static void grow_in_place(struct seen *s)
{
	munmap(seen_page(s->p, SEEN_PAGES), SEEN_OCTETS);
	seen_note(s, "%s",
		  mremap(s->p, SEEN_OCTETS, 2 * SEEN_OCTETS, 0) == s->p ? "grown" : "failed");
	seen_look(s, "old", seen_page(s->p, 3));
	seen_look(s, "new", seen_page(s->p, SEEN_PAGES));
	seen_fill(seen_page(s->p, SEEN_PAGES), SEEN_OCTETS);
	seen_write(s, "WRITE", seen_page(s->p, 3));
	seen_look(s, "old", seen_page(s->p, 3));
	seen_deregister(s, seen_page(s->p, 3));
	seen_look(s, "old", seen_page(s->p, 3));
	seen_look(s, "new", seen_page(s->p, SEEN_PAGES + 1));
}

static void grow_and_move(struct seen *s)
{
	uint8_t *q = seen_grow_elsewhere(s, 3 * SEEN_OCTETS);

	seen_look(s, "old", seen_page(q, 3));
	seen_look(s, "new", seen_page(q, SEEN_PAGES));
	seen_fill(seen_page(q, SEEN_PAGES), 2 * SEEN_OCTETS);
	seen_write(s, "WRITE", seen_page(s->p, 3));
	seen_look(s, "old", seen_page(q, 3));
	seen_look(s, "next", seen_page(q, 4));
	seen_look(s, "where it was", seen_page(s->p, 3));
	seen_deregister(s, seen_page(q, 3));
	seen_look(s, "next", seen_page(q, 4));
	seen_look(s, "new", seen_page(q, SEEN_PAGES + 1));
}

static void grow_a_part(struct seen *s)
{
	uint8_t *q = mremap(s->p, SEEN_HALF, SEEN_OCTETS, MREMAP_MAYMOVE);

	seen_look(s, "old", seen_page(q, 3));
	seen_look(s, "new", seen_page(q, SEEN_PAGES / 2));
	seen_look(s, "rest", seen_page(s->p, SEEN_PAGES / 2));
	seen_deregister(s, seen_page(q, 3));
	seen_fill(seen_page(q, SEEN_PAGES / 2), SEEN_HALF);
	seen_look(s, "rest", seen_page(s->p, SEEN_PAGES / 2));
}

static void shrink(struct seen *s)
{
	seen_note(s, "%s", mremap(s->p, SEEN_OCTETS, SEEN_HALF, 0) == s->p ? "shrunk" : "failed");
	seen_look(s, "kept", seen_page(s->p, 3));
	seen_look(s, "gone", seen_page(s->p, SEEN_PAGES - 1));
	seen_write(s, "WRITE", seen_page(s->p, 3));
	seen_write(s, "WRITE to what is gone", seen_page(s->p, SEEN_PAGES - 1));
	seen_look(s, "kept", seen_page(s->p, 3));
	seen_deregister(s, seen_page(s->p, 3));
	seen_look(s, "kept", seen_page(s->p, 4));
}

static void shrink_and_grow(struct seen *s)
{
	mremap(s->p, SEEN_OCTETS, SEEN_HALF, 0);
	mremap(s->p, SEEN_HALF, SEEN_OCTETS, 0);
	seen_look(s, "kept", seen_page(s->p, 3));
	seen_look(s, "again", seen_page(s->p, SEEN_PAGES - 1));
	seen_deregister(s, seen_page(s->p, SEEN_PAGES - 1));
}

static void move(struct seen *s)
{
	uint8_t *to = mmap(NULL, SEEN_OCTETS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *q = mremap(s->p, SEEN_OCTETS, SEEN_OCTETS, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	seen_note(s, "%s", q == to ? "moved" : "failed");
	seen_look(s, "there", seen_page(q, 3));
	seen_look(s, "where it was", seen_page(s->p, 3));
	seen_write(s, "WRITE", seen_page(s->p, 3));
	seen_look(s, "there", seen_page(q, 3));
	seen_deregister(s, seen_page(q, 3));
	seen_look(s, "there", seen_page(q, 4));
}

static void move_dontunmap(struct seen *s)
{
	uint8_t *q =
		mremap(s->p, SEEN_OCTETS, SEEN_OCTETS, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	seen_note(s, "%s", q != MAP_FAILED ? "moved" : "failed");
	seen_look(s, "there", seen_page(q, 3));
	seen_look(s, "where it was", seen_page(s->p, 3));
	seen_deregister(s, seen_page(q, 3));
	seen_fill(seen_page(s->p, 3), SEEN_PAGE);
	seen_look(s, "there", seen_page(q, 3));
}

/* mremap treats promoted memory differently, but not after deregistration. */
static void remap_after(struct seen *s)
{
	uint8_t *q;

	seen_deregister(s, seen_page(s->p, 3));
	q = mremap(s->p, SEEN_HALF, SEEN_OCTETS, MREMAP_MAYMOVE);
	seen_look(s, "old", seen_page(q, 3));
	seen_look(s, "new", seen_page(q, SEEN_PAGES / 2));
	mremap(q, SEEN_OCTETS, SEEN_HALF, 0);
	mremap(q, SEEN_HALF, SEEN_OCTETS, 0);
	seen_look(s, "again", seen_page(q, SEEN_PAGES - 1));
	mremap(seen_page(s->p, SEEN_PAGES / 2), SEEN_HALF, SEEN_HALF,
	       MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	seen_look(s, "where it was", seen_page(s->p, SEEN_PAGES - 1));
}

static void advise_after(struct seen *s)
{
	seen_deregister(s, seen_page(s->p, 3));
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_REMOVE)));
	seen_look(s, "it", seen_page(s->p, 3));
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_DONTNEED)));
	seen_look(s, "it", seen_page(s->p, 3));
}

/* ---- munmap and mmap ---- */

static void unmap_a_part(struct seen *s)
{
	munmap(seen_page(s->p, 8), 8 * SEEN_PAGE);
	seen_look(s, "before", seen_page(s->p, 7));
	seen_look(s, "gone", seen_page(s->p, 8));
	seen_look(s, "behind", seen_page(s->p, 16));
	seen_write(s, "WRITE", seen_page(s->p, 16));
	seen_look(s, "behind", seen_page(s->p, 16));
	seen_deregister(s, seen_page(s->p, 16));
	seen_access(s, "gone", seen_page(s->p, 8));
	seen_look(s, "before", seen_page(s->p, 7));
	seen_look(s, "behind", seen_page(s->p, 17));
}

static void unmap_all(struct seen *s)
{
	munmap(s->p, SEEN_OCTETS);
	seen_look(s, "gone", seen_page(s->p, 3));
	seen_write(s, "WRITE", seen_page(s->p, 3));
	seen_deregister(s, s->p);
}

static void map_over_it(struct seen *s)
{
	seen_map_other(s);
	seen_look(s, "new", seen_page(s->p, 3));
	seen_fill(s->p, SEEN_OCTETS);
	seen_write(s, "WRITE", seen_page(s->p, 3));
	seen_look(s, "new", seen_page(s->p, 3));
	seen_deregister(s, seen_page(s->p, 3));
	seen_look(s, "next", seen_page(s->p, 4));
}

/* ---- mprotect ---- */

static void protect_for_reading(struct seen *s)
{
	mprotect(s->p, SEEN_HALF, PROT_READ);
	seen_write(s, "WRITE", seen_page(s->p, 3));
	seen_look(s, "it", seen_page(s->p, 3));
	seen_deregister(s, seen_page(s->p, 3));
	seen_access(s, "access", seen_page(s->p, 3));
	seen_access(s, "of the rest", seen_page(s->p, SEEN_PAGES - 1));
	seen_look(s, "next", seen_page(s->p, 4));
}

static void protect_from_all(struct seen *s)
{
	mprotect(s->p, SEEN_HALF, PROT_NONE);
	seen_look(s, "it", seen_page(s->p, 3));
	seen_deregister(s, seen_page(s->p, 3));
	seen_access(s, "access", seen_page(s->p, 3));
	mprotect(s->p, SEEN_HALF, PROT_READ | PROT_WRITE);
	seen_look(s, "it", seen_page(s->p, 3));
}

/* ---- madvise ---- */

static void advise_dontneed(struct seen *s)
{
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_DONTNEED)));
	seen_look(s, "it", seen_page(s->p, 3));
	seen_write(s, "WRITE", seen_page(s->p, 4));
	seen_look(s, "it", seen_page(s->p, 4));
	seen_deregister(s, seen_page(s->p, 3));
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_DONTNEED)));
	seen_look(s, "it", seen_page(s->p, 3));
	seen_look(s, "the rest", seen_page(s->p, SEEN_PAGES - 1));
}

static void advise_free(struct seen *s)
{
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_FREE)));
	seen_deregister(s, seen_page(s->p, 3));
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_FREE)));
}

static void advise_remove(struct seen *s)
{
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_REMOVE)));
	seen_look(s, "it", seen_page(s->p, 3));
	seen_deregister(s, seen_page(s->p, 3));
}

static void advise_wipeonfork(struct seen *s)
{
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_WIPEONFORK)));
	seen_deregister(s, seen_page(s->p, 3));
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_WIPEONFORK)));
}

/* The kernel's record of an advice for the page. */
static void look_for_flag(struct seen *s, const char *flag, const void *at)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool inside = false, found = false;
	char line[512];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = (uintptr_t)at >= start && (uintptr_t)at < end;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, flag) != NULL;
	}
	if (f != NULL)
		fclose(f);
	seen_note(s, "%s:%s", flag + 1, found ? "set" : "not set");
}

static void advise_what_stays(struct seen *s)
{
	static const struct {
		int advice;
		const char *flag;
	} row[] = {
		{ MADV_HUGEPAGE, " hg" },   { MADV_NOHUGEPAGE, " nh" }, { MADV_DONTDUMP, " dd" },
		{ MADV_SEQUENTIAL, " sr" }, { MADV_RANDOM, " rr" },	{ MADV_DONTFORK, " dc" },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (madvise(seen_page(s->p, i), SEEN_PAGE, row[i].advice) != 0)
			seen_note(s, "advice %d fails", row[i].advice);
	seen_deregister(s, seen_page(s->p, 3));
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		look_for_flag(s, row[i].flag, seen_page(s->p, i));
	look_for_flag(s, " dd", seen_page(s->p, 0));
	for (size_t i = 0; i < 7; i += 3)
		seen_look(s, "it", seen_page(s->p, i));
}

static void lock(struct seen *s)
{
	/* the system call, because a sanitizer's mlock() does nothing */
	seen_note(s, "%s", seen_result((int)syscall(SYS_mlock, s->p, SEEN_HALF)));
	seen_deregister(s, seen_page(s->p, 3));
	look_for_flag(s, " lo", seen_page(s->p, 3));
	look_for_flag(s, " lo", seen_page(s->p, SEEN_PAGES - 1));
	seen_look(s, "it", seen_page(s->p, 3));
}

const struct seen_row seen_rows[] = {
	{ "grow in place", grow_in_place,
	  "grown, old: page 3, new: zero, WRITE: done, old: peer, then: private, old: peer, new: program" },
	{ "grow and move", grow_and_move,
	  "moved, old: page 3, new: zero, WRITE: refused, old: page 3, next: page 4, where it was: fault, then: private, next: page 4, new: program",
	  "moved, old: page 3, new: zero, WRITE: done, old: peer, next: page 4, where it was: fault, then: private, next: page 4, new: program" },
	{ "grow a part", grow_a_part,
	  "old: page 3, new: zero, rest: page 32, then: private, rest: page 32",
	  "old: page 3, new: page 32, rest: page 32, then: private, rest: page 32" },
	{ "shrink", shrink,
	  "shrunk, kept: page 3, gone: fault, WRITE: done, WRITE to what is gone: refused, kept: peer, then: private, kept: page 4",
	  "shrunk, kept: page 3, gone: fault, WRITE: done, WRITE to what is gone: done, kept: peer, then: private, kept: page 4" },
	{ "shrink and grow again", shrink_and_grow, "kept: page 3, again: zero, then: private",
	  "kept: page 3, again: page 63, then: private" },
	{ "move", move,
	  "moved, there: page 3, where it was: fault, WRITE: refused, there: page 3, then: private, there: page 4",
	  "moved, there: page 3, where it was: fault, WRITE: done, there: peer, then: private, there: page 4" },
	{ "move with MREMAP_DONTUNMAP", move_dontunmap,
	  "moved, there: page 3, where it was: zero, then: private, there: page 3",
	  "moved, there: page 3, where it was: page 3, then: private, there: page 3" },
	{ "unmap a part", unmap_a_part,
	  "before: page 7, gone: fault, behind: page 16, WRITE: done, behind: peer, then: private, gone: none, before: page 7, behind: page 17" },
	{ "unmap all", unmap_all, "gone: fault, WRITE: refused, then: none",
	  "gone: fault, WRITE: done, then: none" },
	{ "map something else there", map_over_it,
	  "new: zero, WRITE: done, new: peer, then: private, next: program",
	  "new: zero, WRITE: done, new: program, then: private, next: program" },
	{ "mprotect for reading", protect_for_reading,
	  "WRITE: done, it: peer, then: private, access: r--, of the rest: rw-, next: page 4" },
	{ "mprotect from all", protect_from_all,
	  "it: fault, then: private, access: ---, it: page 3" },
	{ "MADV_DONTNEED", advise_dontneed,
	  "0, it: zero, WRITE: done, it: peer, then: private, 0, it: zero, the rest: page 63",
	  "0, it: page 3, WRITE: done, it: peer, then: private, 0, it: zero, the rest: page 63" },
	{ "MADV_FREE", advise_free, "0, then: private, 0", "EINVAL, then: private, 0" },
	{ "MADV_REMOVE", advise_remove, "EINVAL, it: page 3, then: private",
	  "0, it: zero, then: private" },
	{ "MADV_WIPEONFORK", advise_wipeonfork, "0, then: private, 0", "EINVAL, then: private, 0" },
	{ "other advice", advise_what_stays,
	  "then: private, hg:set, nh:set, dd:set, sr:set, rr:set, dc:set, dd:not set, it: page 0, it: page 3, it: page 6" },
	{ "mlock", lock, "0, then: private, lo:set, lo:not set, it: page 3" },
	{ "mremap after deregistration", remap_after,
	  "then: private, old: page 3, new: zero, again: zero, where it was: zero" },
	{ "advice after deregistration", advise_after,
	  "then: private, EINVAL, it: page 3, 0, it: zero" },
};

const uint32_t seen_row_count = sizeof(seen_rows) / sizeof(seen_rows[0]);
