/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fork's child gets private copies of the promoted pages as of one moment: other threads do not
 * write them from before the copy until the child exists (promote_hold.c). The parent makes the
 * copies, and the child maps them at the addresses of the originals. The parent does not wait for
 * that. If threads cannot be held back, the memory is taken back first, and the kernel copies it
 * with the rest (promote_take_back.c).
 *
 * Our handler is called after all that are registered later, so little happens between it and the
 * fork (base/loading.h).
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/loading.h"
#include "base/memory_call.h"
#include "queue/cancel.h"
#include "drivers/client_memory/maps_kept.h"
#include "drivers/client_memory/promote_private.h"

static struct {
	bool watched;
	uint32_t count;
	struct mapping of[LIMIT_PROMOTE_RANGES];
	void *copy[LIMIT_PROMOTE_RANGES]; /* MAP_FAILED: none */
} kept;

/* ---- a spare descriptor, for use when no other can be opened ---- */

static struct {
	int fd;
	ino_t inode;
	dev_t device;
} spare = { .fd = -1 };

static void take_spare(void)
{
	struct stat st;

	if (spare.fd >= 0)
		return;
	spare.fd = memfd_create("uroce-spare", MFD_CLOEXEC);
	if (spare.fd < 0 || fstat(spare.fd, &st) < 0)
		return;
	spare.inode = st.st_ino;
	spare.device = st.st_dev;
}

/* Some programs close descriptors that they do not know. The number may then be another file's. */
static void give_spare(void)
{
	struct stat st;

	if (spare.fd >= 0 && fstat(spare.fd, &st) == 0 && st.st_ino == spare.inode &&
	    st.st_dev == spare.device)
		close(spare.fd);
	spare.fd = -1;
}

/* ---- before the fork ---- */

/*
 * Whether a shared mapping begins there. mremap(2) with an old size of 0 maps its first page a
 * second time. It refuses private ones.
 */
static bool is_shared(uintptr_t at)
{
	void *page = memory_map(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool shared = page != MAP_FAILED && memory_show_again((void *)at, PAGE, page);

	if (page != MAP_FAILED)
		memory_unmap(page, PAGE);
	return shared;
}

/* Nothing shows the mappings, so the parts are looked for where they were promoted. */
static void keep_homes(void)
{
	const uint64_t slot = UINT64_C(1) << PROMOTE_SLOT_SHIFT;

	for (uint32_t i = 0; i < promote_state.parts && kept.count < LIMIT_PROMOTE_RANGES; i++) {
		const struct part *p = &promote_state.part[i];
		uintptr_t at = p->home_start + p->offset % slot;

		if (p->home_end == 0 || !is_shared(at))
			continue;
		kept.of[kept.count++] = (struct mapping){
			.start = at,
			.end = at + p->length,
			.offset = p->offset,
			.inode = promote_state.inode,
			.device = promote_state.device,
			.readable = true,
			.writable = true,
			.shared = true,
		};
	}
}

static void keep_mappings(void)
{
	uintptr_t from = 0;
	int n;

	kept.count = 0;
	do {
		n = maps_read(from, UINTPTR_MAX, false, promote_state.found, LIMIT_PROMOTE_RANGES);
		for (int i = 0; i < n && kept.count < LIMIT_PROMOTE_RANGES; i++)
			if (promote_is_ours(&promote_state.found[i]))
				kept.of[kept.count++] = promote_state.found[i];
		if (n > 0)
			from = promote_state.found[n - 1].end;
	} while (n == (int)LIMIT_PROMOTE_RANGES);
	if (n < 0)
		keep_homes();
}

/*
 * Calls `give` for each mapping of the promoted file. Returns how many calls failed. UINT32_MAX:
 * they cannot be read.
 */
static uint32_t each_of_ours(bool (*give)(const struct mapping *m))
{
	uintptr_t from = 0;
	uint32_t left = 0;
	int n;

	do {
		n = maps_read(from, UINTPTR_MAX, true, promote_state.found, LIMIT_PROMOTE_RANGES);
		for (int i = 0; i < n; i++)
			if (promote_is_ours(&promote_state.found[i]))
				left += !give(&promote_state.found[i]);
		if (n > 0)
			from = promote_state.found[n - 1].end;
	} while (n == (int)LIMIT_PROMOTE_RANGES);
	return n < 0 ? UINT32_MAX : left;
}

/* ---- memory that is taken back ---- */

static bool (*leave_engines)(uint32_t leaves);

/*
 * Relaxed: the function is a constant of the program, and a thread that does not see it when it
 * forks has no engine.
 */
void promote_before_fork(bool (*leave)(uint32_t leaves))
{
	__atomic_store_n(&leave_engines, leave, __ATOMIC_RELAXED);
}

static bool take_one(const struct mapping *m)
{
	return promote_take_back(m, false);
}

/*
 * Tells the engines first. After that the file is written only through the mappings that are
 * replaced.
 */
static void take_all_back(void)
{
	bool (*leave)(uint32_t leaves) = __atomic_load_n(&leave_engines, __ATOMIC_RELAXED);

	if (leave == NULL)
		return;
	promote_state.leave_failed = !leave(++promote_state.leaves);
	if (promote_state.leave_failed)
		return;
	if (each_of_ours(take_one) > 0)
		return; /* a part may be in both kinds of mappings, so all stay */
	while (promote_state.parts > 0) {
		uint32_t last = promote_state.parts - 1;
		uint64_t from = promote_state.part[last].offset;

		promote_drop_left(from, promote_reach(last) - from);
		promote_state.parts--;
	}
}

static void fork_prepare(void)
{
	promote_state.fork_cancel = cancel_off();
	pthread_mutex_lock(&promote_state.lock);
	kept.count = 0;
	promote_tidy_left();
	if (promote_state.parts == 0)
		return;
	give_spare();
	keep_mappings();
	if (!promote_can_hold(kept.of, kept.count)) {
		take_all_back();
		keep_mappings();
	}
	promote_hold(kept.of, kept.count);
	for (uint32_t i = 0; i < kept.count; i++)
		kept.copy[i] = promote_copy_of(&kept.of[i]);
	promote_hold_copied();
}

/* ---- after the fork ---- */

static void drop_copies(void)
{
	for (uint32_t i = 0; i < kept.count; i++)
		if (kept.copy[i] != MAP_FAILED)
			memory_unmap(kept.copy[i], kept.of[i].end - kept.of[i].start);
	kept.count = 0;
}

static void fork_parent(void)
{
	promote_let_go();
	drop_copies();
	if (promote_state.ready)
		take_spare();
	pthread_mutex_unlock(&promote_state.lock);
	cancel_restore(promote_state.fork_cancel);
}

/*
 * For a mapping without a copy: copies the mapping now. If that fails, maps the file privately.
 * Then at least the child's writes stay its own, but the parent's later writes are visible where
 * the child has not written.
 */
static bool copy_for_child(const struct mapping *m)
{
	size_t length = m->end - m->start;
	int access = (m->readable ? PROT_READ : 0) | (m->writable ? PROT_WRITE : 0) |
		     (m->executable ? PROT_EXEC : 0);
	bool ours = promote_fd_is_ours();

	if (!ours) /* no other thread of the child can see that */
		memory_protect((void *)m->start, length, PROT_READ);
	if (!promote_replace_by_copy(m) &&
	    (!ours || memory_map((void *)m->start, length, access, MAP_PRIVATE | MAP_FIXED,
				 promote_state.fd, m->offset) != (void *)m->start))
		abort(); /* else two processes would write the same memory */
	return true;
}

/* Maps the copy that was made of this mapping, unless the program has remapped it since. */
static bool give_copy(const struct mapping *m)
{
	for (uint32_t i = 0; i < kept.count; i++) {
		const struct mapping *of = &kept.of[i];

		if (kept.copy[i] != MAP_FAILED && m->start >= of->start && m->end <= of->end &&
		    m->offset - of->offset == m->start - of->start)
			return promote_put_copy((char *)kept.copy[i] + (m->start - of->start), m);
	}
	return false;
}

/*
 * Without /proc the child has the parent's mappings of before the fork, except those that are not
 * there any more, or were not inherited.
 */
static void give_kept(void)
{
	for (uint32_t i = 0; i < kept.count; i++) {
		const struct mapping *m = &kept.of[i];

		if (is_shared(m->start) && (kept.copy[i] == MAP_FAILED || !give_copy(m)))
			copy_for_child(m);
	}
}

static void give_copies(void)
{
	uint32_t left = each_of_ours(give_copy);

	if (left == UINT32_MAX)
		give_kept();
	drop_copies(); /* first, because later mappings may use the addresses of used copies */
	if (left > 0 && left != UINT32_MAX)
		each_of_ours(copy_for_child);
}

static void fork_child(void)
{
	promote_hold_forget();
	maps_forget();
	if (promote_state.parts != 0)
		give_copies();
	if (promote_fd_is_ours())
		close(promote_state.fd);
	promote_state.fd = -1;
	promote_state.parts = 0;
	promote_forget_left();
	promote_peer_forget();
	/* A program that has promoted nothing needs neither. An open smaps keeps /proc from being unmounted. */
	if (promote_state.ready) {
		maps_keep();
		take_spare();
	}
	pthread_mutex_unlock(&promote_state.lock);
	cancel_restore(promote_state.fork_cancel);
}

static AT_LOAD(LOAD_MEMORY) void watch_forks(void)
{
	kept.watched = pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
}

bool promote_watch_forks(void)
{
	maps_keep();
	take_spare();
	return kept.watched;
}
