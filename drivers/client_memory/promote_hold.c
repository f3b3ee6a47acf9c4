/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * While a process forks, other threads must not write promoted memory. The child's copy of it is
 * older than the rest of the child's memory. A thread that wrote both in between would leave the
 * child with data that do not fit together.
 *
 * A userfaultfd holds the writers back. Two kinds of threads must not be held:
 * - the thread that forks, in handlers of other libraries (pthread_atfork) or in signal handlers
 * - a thread with a lock that such a handler, or fork itself, is about to take
 *
 * So a helper thread of ours watches. It lets the forking thread write at once, page by page. After
 * LIMIT_FORK_HOLD it lets all threads write.
 *
 * Without the privilege for a full userfaultfd, a system call that writes into held memory would
 * fail. Then nothing is held, unless UROCE_PROMOTE=on accepts that. Memory that the engine also
 * accesses as peer memory is never held, because its copies would fail. In both cases the memory is
 * taken back before the fork instead (promote_take_back.c). Only if that fails, too, may the child
 * find half-finished writes of other threads.
 *
 * The atomics are between the helper thread and the thread that forks.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/loading.h"
#include "drivers/client_memory/promote_private.h"

#define HELPER_STACK (64u << 10) /* octets */
#define TICK_NS	     1000000 /* the longest that a handler that writes promoted memory waits */

static struct {
	int fd; /* the userfaultfd */
	const struct mapping *held;
	uint32_t count; /* atomic */
	pid_t forks; /* the thread that forks */
	uint32_t copied; /* atomic, 1: the copies are made, and LIMIT_FORK_HOLD begins */
	uint32_t over; /* atomic and a futex, 1: the fork is over */
	pthread_t helper;
} hold = { .fd = -1 };

static bool one_thread(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

static int open_userfaultfd(void)
{
	const char *how = getenv("UROCE_PROMOTE");
	struct uffdio_api api = { .api = UFFD_API,
				  .features =
					  UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_THREAD_ID };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == EPERM && how != NULL && strcmp(how, "on") == 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	/* before Linux 5.19 shared memory cannot be protected */
	if (fd >= 0 && (ioctl(fd, UFFDIO_API, &api) < 0 ||
			(api.features & UFFD_FEATURE_WP_HUGETLBFS_SHMEM) == 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool promote_can_hold(const struct mapping *m, uint32_t count)
{
	bool whole = true;
	int fd;

	if (one_thread())
		return true;
	fd = open_userfaultfd();
	if (fd < 0)
		return false;
	close(fd);
	for (uint32_t i = 0; i < count; i++)
		whole &= !promote_peer_is(m[i].start, m[i].end);
	return whole;
}

/* ---- held memory ---- */

static void hold_one(const struct mapping *m)
{
	struct uffdio_register reg = {
		.range = { m->start, m->end - m->start },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect protect = {
		.range = { m->start, m->end - m->start },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	if (ioctl(hold.fd, UFFDIO_REGISTER, &reg) == 0)
		ioctl(hold.fd, UFFDIO_WRITEPROTECT, &protect);
}

/* Fails if the program has unmapped the memory meanwhile. Then there is nothing to do. */
static void let_go(uintptr_t start, uint64_t length)
{
	struct uffdio_writeprotect protect = { .range = { start, length }, .mode = 0 };

	ioctl(hold.fd, UFFDIO_WRITEPROTECT, &protect);
}

static void let_all_go(void)
{
	uint32_t count = __atomic_load_n(&hold.count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count; i++)
		let_go(hold.held[i].start, hold.held[i].end - hold.held[i].start);
}

/* ---- the helper thread ---- */

static void release_forking_thread(void)
{
	struct uffd_msg m;

	while (read(hold.fd, &m, sizeof(m)) == (ssize_t)sizeof(m))
		if (m.event == UFFD_EVENT_PAGEFAULT &&
		    (pid_t)m.arg.pagefault.feat.ptid == hold.forks)
			let_go(m.arg.pagefault.address & ~(uint64_t)(PAGE - 1), PAGE);
}

static void *help(void *unused)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };

	(void)unused;
	for (uint32_t ticks = 0; !__atomic_load_n(&hold.over, __ATOMIC_ACQUIRE);) {
		release_forking_thread();
		if (__atomic_load_n(&hold.copied, __ATOMIC_RELAXED) && ++ticks == LIMIT_FORK_HOLD)
			let_all_go();
		syscall(SYS_futex, &hold.over, FUTEX_WAIT_PRIVATE, 0, &tick, NULL, 0);
	}
	return NULL;
}

static size_t (*smallest_stack)(const pthread_attr_t *attr);

static AT_LOAD(LOAD_MEMORY) void find_smallest_stack(void)
{
	*(void **)&smallest_stack = dlsym(RTLD_DEFAULT, "__pthread_get_minstack");
}

/*
 * A thread's stack contains the thread-local storage of the program, which may be large. Only this
 * function of glibc tells how large. Without it the stack has the usual size.
 */
static void choose_stack(pthread_attr_t *attr)
{
	if (smallest_stack != NULL)
		pthread_attr_setstacksize(attr, smallest_stack(attr) + HELPER_STACK);
}

/* The helper blocks all signals: they are for the program's threads. */
static bool start_helper(void)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int error;

	hold.over = hold.copied = hold.count = 0;
	hold.forks = (pid_t)syscall(SYS_gettid);
	if (pthread_attr_init(&attr) != 0)
		return false;
	choose_stack(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&hold.helper, &attr, help, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return error == 0;
}

/* ---- one fork ---- */

void promote_hold(const struct mapping *m, uint32_t count)
{
	if (count == 0 || one_thread() || promote_state.leave_failed)
		return;
	hold.held = m;
	hold.fd = open_userfaultfd();
	if (hold.fd >= 0 && !start_helper()) {
		close(hold.fd);
		hold.fd = -1;
	}
	/*
	 * One mapping may be impossible to hold, because another userfaultfd has it. The others
	 * still are.
	 */
	for (uint32_t i = 0; hold.fd >= 0 && i < count; i++) {
		if (!promote_peer_is(m[i].start, m[i].end))
			hold_one(&m[i]);
		__atomic_store_n(&hold.count, i + 1, __ATOMIC_RELEASE);
	}
}

void promote_hold_copied(void)
{
	__atomic_store_n(&hold.copied, 1, __ATOMIC_RELAXED);
}

void promote_let_go(void)
{
	if (hold.fd < 0)
		return;
	__atomic_store_n(&hold.over, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &hold.over, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	pthread_join(hold.helper, NULL);
	let_all_go();
	for (uint32_t i = 0; i < hold.count; i++) {
		struct uffdio_range range = { hold.held[i].start,
					      hold.held[i].end - hold.held[i].start };

		ioctl(hold.fd, UFFDIO_UNREGISTER, &range); /* the child has the descriptor, too */
	}
	close(hold.fd);
	hold.fd = -1;
}

void promote_hold_forget(void)
{
	if (hold.fd >= 0)
		close(hold.fd);
	hold.fd = -1;
}
