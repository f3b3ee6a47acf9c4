/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of the table in docs/memory.md, with the same names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seen.h"

#define HALF (SEEN_OCTETS / 2)

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static uint8_t *page(uint8_t *p, size_t i)
{
	return p + i * SEEN_PAGE;
}

static const char *result(int value)
{
	return value == 0 ? "0" : errno == EINVAL ? "EINVAL" : "another error";
}

/* ---- mremap ---- */

static void grow_in_place(struct seen *s)
{
	munmap(page(s->p, SEEN_PAGES), SEEN_OCTETS);
	seen_note(s, "%s",
		  mremap(s->p, SEEN_OCTETS, 2 * SEEN_OCTETS, 0) == s->p ? "grown" : "failed");
	seen_look(s, "old", page(s->p, 3));
	seen_look(s, "new", page(s->p, SEEN_PAGES));
	seen_fill(page(s->p, SEEN_PAGES), SEEN_OCTETS);
	seen_write(s, "WRITE", page(s->p, 3));
	seen_look(s, "old", page(s->p, 3));
	seen_deregister(s, page(s->p, 3));
	seen_look(s, "old", page(s->p, 3));
	seen_look(s, "new", page(s->p, SEEN_PAGES + 1));
}

static uint8_t *grow_elsewhere(struct seen *s, size_t to)
{
	uint8_t *q = mremap(s->p, SEEN_OCTETS, to, MREMAP_MAYMOVE);

	seen_note(s, "%s", q != MAP_FAILED && q != s->p ? "moved" : "failed");
	return q;
}

static void grow_and_move(struct seen *s)
{
	uint8_t *q = grow_elsewhere(s, 3 * SEEN_OCTETS);

	seen_look(s, "old", page(q, 3));
	seen_look(s, "new", page(q, SEEN_PAGES));
	seen_fill(page(q, SEEN_PAGES), 2 * SEEN_OCTETS);
	seen_write(s, "WRITE", page(s->p, 3));
	seen_look(s, "old", page(q, 3));
	seen_look(s, "next", page(q, 4));
	seen_look(s, "where it was", page(s->p, 3));
	seen_deregister(s, page(q, 3));
	seen_look(s, "next", page(q, 4));
	seen_look(s, "new", page(q, SEEN_PAGES + 1));
}

static void grow_a_part(struct seen *s)
{
	uint8_t *q = mremap(s->p, HALF, SEEN_OCTETS, MREMAP_MAYMOVE);

	seen_look(s, "old", page(q, 3));
	seen_look(s, "new", page(q, SEEN_PAGES / 2));
	seen_look(s, "rest", page(s->p, SEEN_PAGES / 2));
	seen_deregister(s, page(q, 3));
	seen_fill(page(q, SEEN_PAGES / 2), HALF);
	seen_look(s, "rest", page(s->p, SEEN_PAGES / 2));
}

static void shrink(struct seen *s)
{
	seen_note(s, "%s", mremap(s->p, SEEN_OCTETS, HALF, 0) == s->p ? "shrunk" : "failed");
	seen_look(s, "kept", page(s->p, 3));
	seen_look(s, "gone", page(s->p, SEEN_PAGES - 1));
	seen_write(s, "WRITE", page(s->p, 3));
	seen_write(s, "WRITE to what is gone", page(s->p, SEEN_PAGES - 1));
	seen_look(s, "kept", page(s->p, 3));
	seen_deregister(s, page(s->p, 3));
	seen_look(s, "kept", page(s->p, 4));
}

static void shrink_and_grow(struct seen *s)
{
	mremap(s->p, SEEN_OCTETS, HALF, 0);
	mremap(s->p, HALF, SEEN_OCTETS, 0);
	seen_look(s, "kept", page(s->p, 3));
	seen_look(s, "again", page(s->p, SEEN_PAGES - 1));
	seen_deregister(s, page(s->p, SEEN_PAGES - 1));
}

static void move(struct seen *s)
{
	uint8_t *to = mmap(NULL, SEEN_OCTETS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *q = mremap(s->p, SEEN_OCTETS, SEEN_OCTETS, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	seen_note(s, "%s", q == to ? "moved" : "failed");
	seen_look(s, "there", page(q, 3));
	seen_look(s, "where it was", page(s->p, 3));
	seen_write(s, "WRITE", page(s->p, 3));
	seen_look(s, "there", page(q, 3));
	seen_deregister(s, page(q, 3));
	seen_look(s, "there", page(q, 4));
}

static void move_dontunmap(struct seen *s)
{
	uint8_t *q =
		mremap(s->p, SEEN_OCTETS, SEEN_OCTETS, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	seen_note(s, "%s", q != MAP_FAILED ? "moved" : "failed");
	seen_look(s, "there", page(q, 3));
	seen_look(s, "where it was", page(s->p, 3));
	seen_deregister(s, page(q, 3));
	seen_fill(page(s->p, 3), SEEN_PAGE);
	seen_look(s, "there", page(q, 3));
}

/* What mremap does to promoted memory differently, it does not do after deregistration. */
static void remap_after(struct seen *s)
{
	uint8_t *q;

	seen_deregister(s, page(s->p, 3));
	q = mremap(s->p, HALF, SEEN_OCTETS, MREMAP_MAYMOVE);
	seen_look(s, "old", page(q, 3));
	seen_look(s, "new", page(q, SEEN_PAGES / 2));
	mremap(q, SEEN_OCTETS, HALF, 0);
	mremap(q, HALF, SEEN_OCTETS, 0);
	seen_look(s, "again", page(q, SEEN_PAGES - 1));
	mremap(page(s->p, SEEN_PAGES / 2), HALF, HALF, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	seen_look(s, "where it was", page(s->p, SEEN_PAGES - 1));
}

static void advise_after(struct seen *s)
{
	seen_deregister(s, page(s->p, 3));
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_REMOVE)));
	seen_look(s, "it", page(s->p, 3));
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_DONTNEED)));
	seen_look(s, "it", page(s->p, 3));
}

/* ---- munmap and mmap ---- */

static void unmap_a_part(struct seen *s)
{
	munmap(page(s->p, 8), 8 * SEEN_PAGE);
	seen_look(s, "before", page(s->p, 7));
	seen_look(s, "gone", page(s->p, 8));
	seen_look(s, "behind", page(s->p, 16));
	seen_write(s, "WRITE", page(s->p, 16));
	seen_look(s, "behind", page(s->p, 16));
	seen_deregister(s, page(s->p, 16));
	seen_access(s, "gone", page(s->p, 8));
	seen_look(s, "before", page(s->p, 7));
	seen_look(s, "behind", page(s->p, 17));
}

static void unmap_all(struct seen *s)
{
	munmap(s->p, SEEN_OCTETS);
	seen_look(s, "gone", page(s->p, 3));
	seen_write(s, "WRITE", page(s->p, 3));
	seen_deregister(s, s->p);
}

static void map_other(struct seen *s)
{
	mmap(s->p, SEEN_OCTETS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	     0);
}

static void map_over_it(struct seen *s)
{
	map_other(s);
	seen_look(s, "new", page(s->p, 3));
	seen_fill(s->p, SEEN_OCTETS);
	seen_write(s, "WRITE", page(s->p, 3));
	seen_look(s, "new", page(s->p, 3));
	seen_deregister(s, page(s->p, 3));
	seen_look(s, "next", page(s->p, 4));
}

/* ---- mprotect ---- */

static void protect_for_reading(struct seen *s)
{
	mprotect(s->p, HALF, PROT_READ);
	seen_write(s, "WRITE", page(s->p, 3));
	seen_look(s, "it", page(s->p, 3));
	seen_deregister(s, page(s->p, 3));
	seen_access(s, "access", page(s->p, 3));
	seen_access(s, "of the rest", page(s->p, SEEN_PAGES - 1));
	seen_look(s, "next", page(s->p, 4));
}

static void protect_from_all(struct seen *s)
{
	mprotect(s->p, HALF, PROT_NONE);
	seen_look(s, "it", page(s->p, 3));
	seen_deregister(s, page(s->p, 3));
	seen_access(s, "access", page(s->p, 3));
	mprotect(s->p, HALF, PROT_READ | PROT_WRITE);
	seen_look(s, "it", page(s->p, 3));
}

/* ---- madvise ---- */

static void advise_dontneed(struct seen *s)
{
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_DONTNEED)));
	seen_look(s, "it", page(s->p, 3));
	seen_write(s, "WRITE", page(s->p, 4));
	seen_look(s, "it", page(s->p, 4));
	seen_deregister(s, page(s->p, 3));
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_DONTNEED)));
	seen_look(s, "it", page(s->p, 3));
	seen_look(s, "the rest", page(s->p, SEEN_PAGES - 1));
}

static void advise_free(struct seen *s)
{
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_FREE)));
	seen_deregister(s, page(s->p, 3));
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_FREE)));
}

static void advise_remove(struct seen *s)
{
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_REMOVE)));
	seen_look(s, "it", page(s->p, 3));
	seen_deregister(s, page(s->p, 3));
}

static void advise_wipeonfork(struct seen *s)
{
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_WIPEONFORK)));
	seen_deregister(s, page(s->p, 3));
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_WIPEONFORK)));
}

/* What the kernel records of an advice for the page. */
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
		if (madvise(page(s->p, i), SEEN_PAGE, row[i].advice) != 0)
			seen_note(s, "advice %d fails", row[i].advice);
	seen_deregister(s, page(s->p, 3));
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		look_for_flag(s, row[i].flag, page(s->p, i));
	look_for_flag(s, " dd", page(s->p, 0));
	for (size_t i = 0; i < 7; i += 3)
		seen_look(s, "it", page(s->p, i));
}

static void lock(struct seen *s)
{
	/* the system call, because a sanitizer's mlock() does nothing */
	seen_note(s, "%s", result((int)syscall(SYS_mlock, s->p, HALF)));
	seen_deregister(s, page(s->p, 3));
	look_for_flag(s, " lo", page(s->p, 3));
	look_for_flag(s, " lo", page(s->p, SEEN_PAGES - 1));
	seen_look(s, "it", page(s->p, 3));
}

/* ---- fork ---- */

static void look_in_child(struct seen *child, uint8_t *p)
{
	seen_look(child, "child", page(p, 3));
	seen_access(child, "its access", page(p, 3));
	seen_fill(page(p, 5), SEEN_PAGE);
	seen_look(child, "its own", page(p, 5));
}

/* The child looks after the parent has written, and the parent after the child has. */
static void fork_and(struct seen *s, uint8_t *p, void (*look)(struct seen *child, uint8_t *p))
{
	int go[2], back[2], status;
	struct seen child = *s;
	pid_t pid;
	char c;

	if (pipe(go) != 0 || pipe(back) != 0)
		abort();
	pid = fork();
	if (pid == 0) {
		child.text[0] = '\0';
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		look(&child, p);
		_exit(write(back[1], child.text, sizeof(child.text)) != sizeof(child.text));
	}
	close(back[1]);
	mprotect(page(p, 3), SEEN_PAGE, PROT_READ | PROT_WRITE);
	seen_fill(page(p, 3), SEEN_PAGE);
	if (write(go[1], "g", 1) != 1 ||
	    read(back[0], child.text, sizeof(child.text)) != sizeof(child.text))
		strcpy(child.text, "no child");
	waitpid(pid, &status, 0);
	seen_note(s, "%s", child.text);
	seen_look(s, "parent", page(p, 5));
	seen_look(s, "its own", page(p, 3));
	close(go[0]);
	close(go[1]);
	close(back[0]);
}

static void fork_now(struct seen *s, uint8_t *p)
{
	fork_and(s, p, look_in_child);
}

static void fork_registered(struct seen *s)
{
	fork_now(s, s->p);
	seen_write(s, "WRITE", page(s->p, 5));
	seen_look(s, "parent", page(s->p, 5));
	seen_deregister(s, page(s->p, 3));
}

static void fork_grown(struct seen *s)
{
	uint8_t *q = grow_elsewhere(s, 3 * SEEN_OCTETS);

	fork_now(s, q);
	fork_now(s, page(q, SEEN_PAGES));
	seen_deregister(s, page(q, 3));
}

static void fork_protected(struct seen *s)
{
	mprotect(page(s->p, 3), SEEN_PAGE, PROT_READ);
	fork_now(s, s->p);
	seen_deregister(s, page(s->p, 3));
}

static void fork_with_a_hole(struct seen *s)
{
	munmap(page(s->p, 8), 8 * SEEN_PAGE);
	fork_now(s, s->p);
	fork_now(s, page(s->p, 16));
	seen_deregister(s, page(s->p, 3));
}

static void fork_after(struct seen *s)
{
	seen_deregister(s, page(s->p, 3));
	fork_now(s, s->p);
}

static void fork_grown_in_place(struct seen *s)
{
	munmap(page(s->p, SEEN_PAGES), SEEN_OCTETS);
	mremap(s->p, SEEN_OCTETS, 2 * SEEN_OCTETS, 0);
	fork_now(s, s->p);
	fork_now(s, page(s->p, SEEN_PAGES));
	seen_deregister(s, page(s->p, 3));
}

/* The parent writes one of two addresses of the same pages, and the child looks at both. */
static void fork_part_grown(struct seen *s)
{
	uint8_t *q = mremap(s->p, HALF, SEEN_OCTETS, MREMAP_MAYMOVE);

	fork_now(s, page(q, SEEN_PAGES / 2));
	fork_now(s, page(s->p, SEEN_PAGES / 2 + 8));
	seen_deregister(s, page(q, 3));
}

static void fork_shrunk(struct seen *s)
{
	mremap(s->p, SEEN_OCTETS, HALF, 0);
	fork_now(s, s->p);
	seen_deregister(s, page(s->p, 3));
}

static void fork_shrunk_and_grown(struct seen *s)
{
	mremap(s->p, SEEN_OCTETS, HALF, 0);
	mremap(s->p, HALF, SEEN_OCTETS, 0);
	fork_now(s, s->p);
	fork_now(s, page(s->p, SEEN_PAGES / 2));
	seen_deregister(s, page(s->p, 3));
}

static void fork_moved(struct seen *s)
{
	uint8_t *to = mmap(NULL, SEEN_OCTETS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *q = mremap(s->p, SEEN_OCTETS, SEEN_OCTETS, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	fork_now(s, q);
	seen_look(s, "where it was", page(s->p, 3));
	seen_deregister(s, page(q, 3));
}

static void fork_moved_dontunmap(struct seen *s)
{
	uint8_t *q =
		mremap(s->p, SEEN_OCTETS, SEEN_OCTETS, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	fork_now(s, q);
	fork_now(s, page(s->p, 8));
	seen_deregister(s, page(q, 3));
}

static void fork_mapped_over(struct seen *s)
{
	map_other(s);
	fork_now(s, s->p);
	seen_deregister(s, page(s->p, 3));
}

static void open_in_child(struct seen *child, uint8_t *p)
{
	look_in_child(child, p);
	mprotect(page(p, 3), SEEN_PAGE, PROT_READ | PROT_WRITE);
	seen_look(child, "opened", page(p, 3));
}

static void fork_protected_from_all(struct seen *s)
{
	mprotect(page(s->p, 3), SEEN_PAGE, PROT_NONE);
	fork_and(s, s->p, open_in_child);
	seen_deregister(s, page(s->p, 3));
}

static void fork_advised(struct seen *s, int advice)
{
	seen_note(s, "%s", result(madvise(s->p, HALF, advice)));
	fork_now(s, s->p);
	seen_look(s, "before", page(s->p, 2));
	seen_look(s, "the rest", page(s->p, SEEN_PAGES - 1));
	seen_deregister(s, page(s->p, 3));
}

static void fork_dontneed(struct seen *s)
{
	fork_advised(s, MADV_DONTNEED);
}

static void fork_removed(struct seen *s)
{
	fork_advised(s, MADV_REMOVE);
}

/* Nothing is looked at that the kernel may take or leave. */
static void fork_freed(struct seen *s)
{
	seen_note(s, "%s", result(madvise(s->p, HALF, MADV_FREE)));
	seen_fill(s->p, HALF);
	fork_now(s, s->p);
	seen_look(s, "the rest", page(s->p, SEEN_PAGES - 1));
	seen_deregister(s, page(s->p, 3));
}

/* After MADV_DONTFORK the child has no memory there. */
static void fork_without_it(struct seen *s)
{
	struct seen child = *s;
	int back[2], status;
	pid_t pid;

	if (pipe(back) != 0)
		abort();
	madvise(s->p, HALF, MADV_DONTFORK);
	pid = fork();
	if (pid == 0) {
		child.text[0] = '\0';
		seen_access(&child, "child", page(s->p, 3));
		seen_look(&child, "the rest", page(s->p, SEEN_PAGES - 1));
		_exit(write(back[1], child.text, sizeof(child.text)) != sizeof(child.text));
	}
	if (read(back[0], child.text, sizeof(child.text)) != sizeof(child.text))
		seen_note(s, "no child");
	waitpid(pid, &status, 0);
	seen_note(s, "%s", child.text);
	seen_look(s, "parent", page(s->p, 3));
	seen_deregister(s, page(s->p, 3));
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
	{ "fork", fork_registered,
	  "child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, WRITE: done, parent: peer, then: private" },
	{ "fork after growing", fork_grown,
	  "moved, child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, child: zero, its access: rw-, its own: program, parent: zero, its own: program, then: private" },
	{ "fork after mprotect", fork_protected,
	  "child: page 3, its access: r--, its own: program, parent: page 5, its own: program, then: private" },
	{ "fork after unmapping a part", fork_with_a_hole,
	  "child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, child: page 19, its access: rw-, its own: program, parent: page 21, its own: program, then: private" },
	{ "fork after deregistration", fork_after,
	  "then: private, child: page 3, its access: rw-, its own: program, parent: page 5, its own: program" },
	{ "mremap after deregistration", remap_after,
	  "then: private, old: page 3, new: zero, again: zero, where it was: zero" },
	{ "advice after deregistration", advise_after,
	  "then: private, EINVAL, it: page 3, 0, it: zero" },
	{ "fork after growing in place", fork_grown_in_place,
	  "child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, child: zero, its access: rw-, its own: program, parent: zero, its own: program, then: private" },
	{ "fork after growing a part", fork_part_grown,
	  "child: zero, its access: rw-, its own: program, parent: zero, its own: program, child: page 43, its access: rw-, its own: program, parent: page 45, its own: program, then: private",
	  "child: page 35, its access: rw-, its own: program, parent: page 37, its own: program, child: page 43, its access: rw-, its own: program, parent: page 45, its own: program, then: private" },
	{ "fork after shrinking", fork_shrunk,
	  "child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, then: private" },
	{ "fork after shrinking and growing again", fork_shrunk_and_grown,
	  "child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, child: zero, its access: rw-, its own: program, parent: zero, its own: program, then: private",
	  "child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, child: page 35, its access: rw-, its own: program, parent: page 37, its own: program, then: private" },
	{ "fork after moving", fork_moved,
	  "child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, where it was: fault, then: private" },
	{ "fork after MREMAP_DONTUNMAP", fork_moved_dontunmap,
	  "child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, child: zero, its access: rw-, its own: program, parent: zero, its own: program, then: private",
	  "child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, child: page 11, its access: rw-, its own: program, parent: page 13, its own: program, then: private" },
	{ "fork after mapping something else there", fork_mapped_over,
	  "child: zero, its access: rw-, its own: program, parent: zero, its own: program, then: private" },
	{ "fork after mprotect from all", fork_protected_from_all,
	  "child: fault, its access: ---, its own: program, opened: page 3, parent: page 5, its own: program, then: private" },
	{ "fork after MADV_DONTNEED", fork_dontneed,
	  "0, child: zero, its access: rw-, its own: program, parent: zero, its own: program, before: zero, the rest: page 63, then: private",
	  "0, child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, before: page 2, the rest: page 63, then: private" },
	{ "fork after MADV_FREE", fork_freed,
	  "0, child: program, its access: rw-, its own: program, parent: program, its own: program, the rest: page 63, then: private",
	  "EINVAL, child: program, its access: rw-, its own: program, parent: program, its own: program, the rest: page 63, then: private" },
	{ "fork after MADV_REMOVE", fork_removed,
	  "EINVAL, child: page 3, its access: rw-, its own: program, parent: page 5, its own: program, before: page 2, the rest: page 63, then: private",
	  "0, child: zero, its access: rw-, its own: program, parent: zero, its own: program, before: zero, the rest: page 63, then: private" },
	{ "fork after MADV_DONTFORK", fork_without_it,
	  "child: none, the rest: page 63, parent: page 3, then: private" },
};

const uint32_t seen_row_count = sizeof(seen_rows) / sizeof(seen_rows[0]);
