/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the table in docs/memory.md, with the same names: what a child sees after fork(). */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seen.h"

static void look_in_child(struct seen *child, uint8_t *p)
{
	seen_look(child, "child", seen_page(p, 3));
	seen_access(child, "its access", seen_page(p, 3));
	seen_fill(seen_page(p, 5), SEEN_PAGE);
	seen_look(child, "its own", seen_page(p, 5));
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
	mprotect(seen_page(p, 3), SEEN_PAGE, PROT_READ | PROT_WRITE);
	seen_fill(seen_page(p, 3), SEEN_PAGE);
	if (write(go[1], "g", 1) != 1 ||
	    read(back[0], child.text, sizeof(child.text)) != sizeof(child.text))
		strcpy(child.text, "no child");
	waitpid(pid, &status, 0);
	seen_note(s, "%s", child.text);
	seen_look(s, "parent", seen_page(p, 5));
	seen_look(s, "its own", seen_page(p, 3));
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
	seen_write(s, "WRITE", seen_page(s->p, 5));
	seen_look(s, "parent", seen_page(s->p, 5));
	seen_deregister(s, seen_page(s->p, 3));
}

static void fork_grown(struct seen *s)
{
	uint8_t *q = seen_grow_elsewhere(s, 3 * SEEN_OCTETS);

	fork_now(s, q);
	fork_now(s, seen_page(q, SEEN_PAGES));
	seen_deregister(s, seen_page(q, 3));
}

static void fork_protected(struct seen *s)
{
	mprotect(seen_page(s->p, 3), SEEN_PAGE, PROT_READ);
	fork_now(s, s->p);
	seen_deregister(s, seen_page(s->p, 3));
}

static void fork_with_a_hole(struct seen *s)
{
	munmap(seen_page(s->p, 8), 8 * SEEN_PAGE);
	fork_now(s, s->p);
	fork_now(s, seen_page(s->p, 16));
	seen_deregister(s, seen_page(s->p, 3));
}

static void fork_after(struct seen *s)
{
	seen_deregister(s, seen_page(s->p, 3));
	fork_now(s, s->p);
}

static void fork_grown_in_place(struct seen *s)
{
	munmap(seen_page(s->p, SEEN_PAGES), SEEN_OCTETS);
	mremap(s->p, SEEN_OCTETS, 2 * SEEN_OCTETS, 0);
	fork_now(s, s->p);
	fork_now(s, seen_page(s->p, SEEN_PAGES));
	seen_deregister(s, seen_page(s->p, 3));
}

/* The parent writes one of two addresses of the same pages, and the child looks at both. */
static void fork_part_grown(struct seen *s)
{
	uint8_t *q = mremap(s->p, SEEN_HALF, SEEN_OCTETS, MREMAP_MAYMOVE);

	fork_now(s, seen_page(q, SEEN_PAGES / 2));
	fork_now(s, seen_page(s->p, SEEN_PAGES / 2 + 8));
	seen_deregister(s, seen_page(q, 3));
}

static void fork_shrunk(struct seen *s)
{
	mremap(s->p, SEEN_OCTETS, SEEN_HALF, 0);
	fork_now(s, s->p);
	seen_deregister(s, seen_page(s->p, 3));
}

static void fork_shrunk_and_grown(struct seen *s)
{
	mremap(s->p, SEEN_OCTETS, SEEN_HALF, 0);
	mremap(s->p, SEEN_HALF, SEEN_OCTETS, 0);
	fork_now(s, s->p);
	fork_now(s, seen_page(s->p, SEEN_PAGES / 2));
	seen_deregister(s, seen_page(s->p, 3));
}

static void fork_moved(struct seen *s)
{
	uint8_t *to = mmap(NULL, SEEN_OCTETS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *q = mremap(s->p, SEEN_OCTETS, SEEN_OCTETS, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	fork_now(s, q);
	seen_look(s, "where it was", seen_page(s->p, 3));
	seen_deregister(s, seen_page(q, 3));
}

static void fork_moved_dontunmap(struct seen *s)
{
	uint8_t *q =
		mremap(s->p, SEEN_OCTETS, SEEN_OCTETS, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	fork_now(s, q);
	fork_now(s, seen_page(s->p, 8));
	seen_deregister(s, seen_page(q, 3));
}

static void fork_mapped_over(struct seen *s)
{
	seen_map_other(s);
	fork_now(s, s->p);
	seen_deregister(s, seen_page(s->p, 3));
}

static void open_in_child(struct seen *child, uint8_t *p)
{
	look_in_child(child, p);
	mprotect(seen_page(p, 3), SEEN_PAGE, PROT_READ | PROT_WRITE);
	seen_look(child, "opened", seen_page(p, 3));
}

static void fork_protected_from_all(struct seen *s)
{
	mprotect(seen_page(s->p, 3), SEEN_PAGE, PROT_NONE);
	fork_and(s, s->p, open_in_child);
	seen_deregister(s, seen_page(s->p, 3));
}

static void fork_advised(struct seen *s, int advice)
{
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, advice)));
	fork_now(s, s->p);
	seen_look(s, "before", seen_page(s->p, 2));
	seen_look(s, "the rest", seen_page(s->p, SEEN_PAGES - 1));
	seen_deregister(s, seen_page(s->p, 3));
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
	seen_note(s, "%s", seen_result(madvise(s->p, SEEN_HALF, MADV_FREE)));
	seen_fill(s->p, SEEN_HALF);
	fork_now(s, s->p);
	seen_look(s, "the rest", seen_page(s->p, SEEN_PAGES - 1));
	seen_deregister(s, seen_page(s->p, 3));
}

/* After MADV_DONTFORK the child has no memory there. */
static void fork_without_it(struct seen *s)
{
	struct seen child = *s;
	int back[2], status;
	pid_t pid;

	if (pipe(back) != 0)
		abort();
	madvise(s->p, SEEN_HALF, MADV_DONTFORK);
	pid = fork();
	if (pid == 0) {
		child.text[0] = '\0';
		seen_access(&child, "child", seen_page(s->p, 3));
		seen_look(&child, "the rest", seen_page(s->p, SEEN_PAGES - 1));
		_exit(write(back[1], child.text, sizeof(child.text)) != sizeof(child.text));
	}
	if (read(back[0], child.text, sizeof(child.text)) != sizeof(child.text))
		seen_note(s, "no child");
	waitpid(pid, &status, 0);
	seen_note(s, "%s", child.text);
	seen_look(s, "parent", seen_page(s->p, 3));
	seen_deregister(s, seen_page(s->p, 3));
}

const struct seen_row seen_fork_rows[] = {
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

const uint32_t seen_fork_row_count = sizeof(seen_fork_rows) / sizeof(seen_fork_rows[0]);
