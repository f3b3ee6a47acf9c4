/* SPDX-License-Identifier: BSD-3-Clause */
/* Which pages move into the promoted file, who uses them there, and what a fork does to them. */
#include "drivers/client_memory/promote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "queue/cancel.h"
#include "drivers/client_memory/promote_private.h"

#define FORK_WAIT_MS 60000 /* a child that copies slower than this is not waited for */

struct promote_state promote_state = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.fd = -1,
	.fork_pipe = { -1, -1 },
};

static bool holds(uintptr_t from, uintptr_t to, const void *object)
{
	return (uintptr_t)object >= from && (uintptr_t)object < to;
}

/* --- the promoted file ----------------------------------------------------------------------- */

static bool wanted(void)
{
	const char *how = getenv("UROCE_PROMOTE");

	return how == NULL || strcmp(how, "off") != 0;
}

static int make_file(void)
{
	struct rlimit limit;
	int fd;

	/* beyond RLIMIT_FSIZE ftruncate raises a signal that ends the program */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < PROMOTE_FILE_BYTES)
		return -1;
	fd = memfd_create("uroce-promoted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)PROMOTE_FILE_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void drop_pages(uint64_t offset, uint64_t length)
{
	/* failure keeps memory in use that nobody reads; the next user of the part overwrites it */
	if (fallocate(promote_state.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      (off_t)length) < 0)
		return;
}

static bool is_ours(const struct mapping *m)
{
	return m->shared && m->inode == promote_state.inode && m->device == promote_state.device;
}

/* --- what may move ---------------------------------------------------------------------------- */

static bool has_policy(uintptr_t address)
{
	int mode = MPOL_DEFAULT;

	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, address, MPOL_F_ADDR) < 0)
		return false; /* a kernel without NUMA */
	return mode != MPOL_DEFAULT;
}

/*
 * The caller's own stack and thread-local storage: it needs them while the range is held. (The
 * first thread's stack has its name in the maps; the top of the others' holds their storage.)
 */
static bool is_callers_own(uintptr_t from, uintptr_t to)
{
	uintptr_t self = (uintptr_t)pthread_self();
	pthread_attr_t attr;
	void *stack;
	size_t octets;
	int error;

	if (holds(from, to, (const void *)self) || holds(from, to, &errno))
		return true;
	if (gettid() == getpid())
		return false;
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return true;
	error = pthread_attr_getstack(&attr, &stack, &octets);
	pthread_attr_destroy(&attr);
	return error != 0 || (from < (uintptr_t)stack + octets && to > (uintptr_t)stack);
}

static bool is_own_data(uintptr_t from, uintptr_t to)
{
	uintptr_t data = (uintptr_t)&promote_state;

	return from < data + sizeof(promote_state) && to > data;
}

static bool may_move(const struct mapping *m, uintptr_t from, uintptr_t to)
{
	return !m->shared && m->inode == 0 && m->readable && m->writable && !m->executable &&
	       !m->stack && !m->special && !is_own_data(from, to) && !is_callers_own(from, to) &&
	       !has_policy(from);
}

static void add_backing(struct mr_backing *backing, uint32_t *count, uintptr_t region,
			uintptr_t start, uint64_t length, uint64_t offset)
{
	struct mr_backing *last = *count > 0 ? &backing[*count - 1] : NULL;

	if (last != NULL && last->offset + last->length == start - region &&
	    last->file_offset + last->length == offset) {
		last->length += length;
		return;
	}
	backing[*count] = (struct mr_backing){
		.offset = start - region,
		.length = length,
		.file_offset = offset,
		.fd = BACKING_PROMOTED,
		.writable = 1,
	};
	(*count)++;
}

/* Takes a part of the file for it first: what cannot be recorded is not moved. */
static bool promote_part(uintptr_t start, uint64_t length, uint64_t *offset)
{
	struct part p = { .length = length, .users = 1 };

	p.offset = promote_find_free(length);
	if (p.offset == UINT64_MAX || !promote_insert_part(promote_part_at(p.offset), p))
		return false;
	if (!promote_move_into_file(start, length, p.offset)) {
		promote_remove_part(promote_part_at(p.offset));
		drop_pages(p.offset, length);
		return false;
	}
	*offset = p.offset;
	return true;
}

static void promote_mapping(const struct mapping *m, uintptr_t region, uintptr_t from, uintptr_t to,
			    struct mr_backing *backing, uint32_t *count)
{
	uint64_t offset;

	if (from < m->start)
		from = m->start;
	if (to > m->end)
		to = m->end;
	if (is_ours(m)) {
		offset = m->offset + (from - m->start);
		if (!promote_use_parts(offset, to - from))
			return;
	} else if (!may_move(m, from, to) || !promote_part(from, to - from, &offset)) {
		return;
	}
	add_backing(backing, count, region, from, to - from, offset);
}

/* --- fork ------------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
	promote_state.fork_cancel = cancel_off();
	pthread_mutex_lock(&promote_state.lock);
	if (promote_state.parts == 0 || pipe2(promote_state.fork_pipe, O_CLOEXEC) < 0)
		promote_state.fork_pipe[0] = promote_state.fork_pipe[1] = -1;
}

static void close_end(int i)
{
	if (promote_state.fork_pipe[i] >= 0)
		close(promote_state.fork_pipe[i]);
	promote_state.fork_pipe[i] = -1;
}

/* The parent may write on only when the child has its copies: its end of the pipe closes then. */
static void fork_parent(void)
{
	struct pollfd p = { .fd = promote_state.fork_pipe[0], .events = POLLIN };

	close_end(1);
	if (p.fd >= 0)
		while (poll(&p, 1, FORK_WAIT_MS) < 0 && errno == EINTR)
			;
	close_end(0);
	pthread_mutex_unlock(&promote_state.lock);
	cancel_restore(promote_state.fork_cancel);
}

/*
 * Without memory for a copy: at least what the child writes stays its own (what the parent writes
 * later shows through where the child has not written).
 */
static void copy_for_child(const struct mapping *m)
{
	size_t length = m->end - m->start;

	if (!promote_replace_by_copy(m->start, length, m->offset) &&
	    mmap((void *)m->start, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		 promote_state.fd, (off_t)m->offset) == MAP_FAILED)
		abort(); /* two processes would write the same memory and believe it theirs */
}

static void fork_child(void)
{
	uintptr_t from = 0;
	int n = promote_state.parts == 0 ? 0 : (int)PROMOTE_RANGES_MAX;

	while (n == (int)PROMOTE_RANGES_MAX) {
		n = maps_read(from, UINTPTR_MAX, false, promote_state.found, PROMOTE_RANGES_MAX);
		for (int i = 0; i < n; i++)
			if (is_ours(&promote_state.found[i]))
				copy_for_child(&promote_state.found[i]);
		if (n > 0)
			from = promote_state.found[n - 1].end;
	}
	if (n < 0)
		abort(); /* no /proc: as above */
	if (promote_state.fd >= 0)
		close(promote_state.fd);
	promote_state.fd = -1;
	promote_state.parts = 0;
	close_end(0);
	close_end(1);
	pthread_mutex_unlock(&promote_state.lock);
	cancel_restore(promote_state.fork_cancel);
}

/* --- the interface ---------------------------------------------------------------------------- */

static bool have_file(void)
{
	struct stat st;

	if (promote_state.fd >= 0)
		return true;
	if (promote_state.refused || !wanted())
		return false;
	if (!promote_state.ready)
		promote_state.ready = pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
	if (promote_state.ready)
		promote_state.fd = make_file();
	if (promote_state.fd < 0 || fstat(promote_state.fd, &st) < 0) {
		promote_state.refused = true;
		return false;
	}
	promote_state.inode = st.st_ino;
	promote_state.device = st.st_dev;
	return true;
}

/* What a thread was open to before. */
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
	fd = have_file() ? promote_state.fd : -1;
	leave(&old);
	return fd;
}

/* Regions that stay are registered early. What was refused once for its size always is. */
static bool is_worth_it(size_t length)
{
	if (length >= PROMOTE_SMALL)
		return true;
	if (promote_state.small == PROMOTE_SMALL_MAX)
		return false;
	promote_state.small++;
	return true;
}

uint32_t promote_range(void *addr, size_t length, struct mr_backing *backing, uint32_t max)
{
	uintptr_t region = (uintptr_t)addr;
	uintptr_t from = (region + PAGE - 1) & ~(PAGE - 1), to = (region + length) & ~(PAGE - 1);
	uint32_t count = 0;
	struct interruptions old;
	int n = 0;

	if (length > PROMOTE_LENGTH_MAX || from >= to)
		return 0;
	enter(&old);
	if (have_file() && is_worth_it(length))
		n = maps_read(from, to, true, promote_state.found, PROMOTE_RANGES_MAX);
	for (int i = 0; i < n && count < max; i++)
		promote_mapping(&promote_state.found[i], region, from, to, backing, &count);
	leave(&old);
	return count;
}

/* Whether all of [start, start + length) still shows the file from offset on. */
static bool still_there(uintptr_t start, uint64_t length, uint64_t offset)
{
	int n = maps_read(start, start + length, false, promote_state.found, PROMOTE_RANGES_MAX);
	uintptr_t at = start;

	for (int i = 0; i < n; i++) {
		const struct mapping *m = &promote_state.found[i];

		if (m->start > at || !is_ours(m) ||
		    m->offset + (at - m->start) != offset + (at - start))
			return false;
		at = m->end;
	}
	return at >= start + length;
}

/* Whether any mapping of the process shows something of [offset, offset + length) of the file. */
static bool shown_anywhere(uint64_t offset, uint64_t length)
{
	uintptr_t from = 0;
	int n;

	do {
		n = maps_read(from, UINTPTR_MAX, false, promote_state.found, PROMOTE_RANGES_MAX);
		for (int i = 0; i < n; i++) {
			const struct mapping *m = &promote_state.found[i];

			if (is_ours(m) && m->offset < offset + length &&
			    offset < m->offset + (m->end - m->start))
				return true;
		}
		if (n > 0)
			from = promote_state.found[n - 1].end;
	} while (n == (int)PROMOTE_RANGES_MAX);
	return n < 0;
}

/*
 * The last user has gone. True: the part of the file is free again. Pages that the program has
 * moved elsewhere stay there, in the file; so do those that cannot be turned back.
 */
static bool demote_part(uintptr_t start, const struct part *p)
{
	if (still_there(start, p->length, p->offset)) {
		if (!promote_move_out_of_file(start, p->length, p->offset))
			return false;
	} else if (shown_anywhere(p->offset, p->length)) {
		return false;
	}
	drop_pages(p->offset, p->length);
	return true;
}

static void release_one(uintptr_t start, uint64_t length, uint64_t offset)
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
		if (p->users == 0 && demote_part(start + (p->offset - offset), p))
			promote_remove_part(i);
		else
			i++;
	}
}

void promote_release(void *addr, const struct mr_backing *backing, uint32_t count)
{
	struct interruptions old;

	enter(&old);
	for (uint32_t i = 0; promote_state.fd >= 0 && i < count; i++)
		if (backing[i].fd == BACKING_PROMOTED)
			release_one((uintptr_t)addr + backing[i].offset, backing[i].length,
				    backing[i].file_offset);
	leave(&old);
}
