/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fork's child gets private copies of the promoted pages, as they are at one time: nobody writes
 * them from before they are copied until there is the child (promote_hold.c). The parent makes the
 * copies, the child puts them in their places, and nobody waits for it.
 *
 * Our handler is called behind those of other libraries, so that little happens between it and the
 * fork: it is registered when this library is loaded.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory_call.h"
#include "queue/cancel.h"
#include "drivers/client_memory/promote_private.h"

static struct {
	bool watched;
	uint32_t count;
	struct mapping of[PROMOTE_RANGES_MAX];
	void *copy[PROMOTE_RANGES_MAX]; /* MAP_FAILED: none */
} kept;

/* ---- a descriptor that is there when no other can be had ---- */

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

/* Programs close what they do not know, and then the number may be another file's. */
static void give_spare(void)
{
	struct stat st;

	if (spare.fd >= 0 && fstat(spare.fd, &st) == 0 && st.st_ino == spare.inode &&
	    st.st_dev == spare.device)
		close(spare.fd);
	spare.fd = -1;
}

/* ---- before ---- */

static void keep_mappings(void)
{
	uintptr_t from = 0;
	int n;

	kept.count = 0;
	do {
		n = maps_read(from, UINTPTR_MAX, false, promote_state.found, PROMOTE_RANGES_MAX);
		for (int i = 0; i < n && kept.count < PROMOTE_RANGES_MAX; i++)
			if (promote_is_ours(&promote_state.found[i]))
				kept.of[kept.count++] = promote_state.found[i];
		if (n > 0)
			from = promote_state.found[n - 1].end;
	} while (n == (int)PROMOTE_RANGES_MAX);
}

static void fork_prepare(void)
{
	promote_state.fork_cancel = cancel_off();
	pthread_mutex_lock(&promote_state.lock);
	kept.count = 0;
	if (promote_state.parts == 0)
		return;
	give_spare();
	keep_mappings();
	promote_hold(kept.of, kept.count);
	for (uint32_t i = 0; i < kept.count; i++)
		kept.copy[i] = promote_copy_of(&kept.of[i]);
	promote_hold_copied();
}

/* ---- behind ---- */

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
	take_spare();
	pthread_mutex_unlock(&promote_state.lock);
	cancel_restore(promote_state.fork_cancel);
}

/*
 * Without memory for a copy: at least what the child writes stays its own (what the parent writes
 * later shows through where the child has not written).
 */
static bool copy_for_child(const struct mapping *m)
{
	size_t length = m->end - m->start;
	int access = (m->readable ? PROT_READ : 0) | (m->writable ? PROT_WRITE : 0) |
		     (m->executable ? PROT_EXEC : 0);

	if (!promote_replace_by_copy(m) &&
	    memory_map((void *)m->start, length, access, MAP_PRIVATE | MAP_FIXED, promote_state.fd,
		       m->offset) != (void *)m->start)
		abort(); /* two processes would write the same memory and believe it theirs */
	return true;
}

/* The copy that was made for it, if the program has not moved it since. */
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

/* Returns for how many of ours `give` says false. */
static uint32_t each_of_ours(bool (*give)(const struct mapping *m))
{
	uintptr_t from = 0;
	uint32_t left = 0;
	int n;

	do {
		n = maps_read(from, UINTPTR_MAX, true, promote_state.found, PROMOTE_RANGES_MAX);
		for (int i = 0; i < n; i++)
			if (promote_is_ours(&promote_state.found[i]))
				left += !give(&promote_state.found[i]);
		if (n > 0)
			from = promote_state.found[n - 1].end;
	} while (n == (int)PROMOTE_RANGES_MAX);
	if (n < 0)
		abort(); /* no /proc: as above */
	return left;
}

static void give_copies(void)
{
	uint32_t left = each_of_ours(give_copy);

	drop_copies(); /* before anything else is mapped, perhaps in their places */
	if (left > 0)
		each_of_ours(copy_for_child);
}

static void fork_child(void)
{
	promote_hold_forget();
	if (promote_state.parts != 0)
		give_copies();
	if (promote_state.fd >= 0)
		close(promote_state.fd);
	promote_state.fd = -1;
	promote_state.parts = 0;
	promote_peer_forget();
	take_spare();
	pthread_mutex_unlock(&promote_state.lock);
	cancel_restore(promote_state.fork_cancel);
}

static __attribute__((constructor)) void watch_forks(void)
{
	kept.watched = pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
}

bool promote_watch_forks(void)
{
	take_spare();
	return kept.watched;
}
