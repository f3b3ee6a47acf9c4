/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that sleep in one socket, or in rpoll() in several. Each has an event descriptor. It is
 * made when the thread first has to wait, and closed when the thread ends.
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/loading.h"
#include "rdmacm/rsockets/rs.h"

static pthread_mutex_t sleepers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_sleeper *sleepers;
/*
 * The number of sleepers. Atomic because rs_wake reads it without sleepers_lock. Its caller holds
 * the lock of the socket that has changed, and a sleeper takes that lock, too, after it has counted
 * itself and before it looks at the socket for the last time. So one of them sees the other.
 */
static atomic_uint count;

static __thread int own_fd = -1;
static pthread_key_t at_end;
static bool has_key; /* if false, a thread's descriptor stays open after the thread ends */

static void close_own(void *value)
{
	(void)value;
	if (own_fd >= 0)
		close(own_fd);
	own_fd = -1;
}

/*
 * Called in the child of a fork. Its descriptor is its parent's, too. It is closed now, because later
 * the program may have closed it and opened a file of that number.
 */
static void forget_all(void)
{
	close_own(NULL);
	pthread_mutex_init(&sleepers_lock, NULL);
	sleepers = NULL;
	atomic_store_explicit(&count, 0, memory_order_relaxed);
}

static AT_LOAD(LOAD_RSOCKETS) void prepare_for_forks(void)
{
	pthread_atfork(NULL, NULL, forget_all);
}

static void make_key(void)
{
	has_key = pthread_key_create(&at_end, close_own) == 0;
}

static int open_own(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (own_fd >= 0)
		return 0;
	pthread_once(&once, make_key);
	own_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (own_fd < 0)
		return errno;
	if (has_key)
		pthread_setspecific(at_end, &own_fd); /* not NULL, so that close_own is called */
	return 0;
}

int rs_sleeper_begin(struct rs_sleeper *w, const struct rs_socket *only)
{
	int error = open_own();

	if (error != 0)
		return error;
	w->fd = own_fd;
	w->only = only;
	w->link = &sleepers;
	pthread_mutex_lock(&sleepers_lock);
	w->next = sleepers;
	if (w->next != NULL)
		w->next->link = &w->next;
	sleepers = w;
	atomic_fetch_add(&count, 1);
	pthread_mutex_unlock(&sleepers_lock);
	return 0;
}

void rs_sleeper_drain(struct rs_sleeper *w)
{
	int before = errno; /* of the call that slept */
	uint64_t value;

	/* The descriptor may be empty. */
	if (read(w->fd, &value, sizeof(value)) < 0)
		errno = before;
}

void rs_sleeper_end(struct rs_sleeper *w)
{
	pthread_mutex_lock(&sleepers_lock);
	*w->link = w->next;
	if (w->next != NULL)
		w->next->link = w->link;
	atomic_fetch_sub(&count, 1);
	pthread_mutex_unlock(&sleepers_lock);
	rs_sleeper_drain(w);
}

int64_t rs_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/*
 * Built without the address sanitizer. A thread may be cancelled here, in the landing pad of
 * pthread_cleanup_push, and the sanitizer mistakes that for an overwritten stack.
 */
__attribute__((no_sanitize_address)) int rs_poll_cancellable(struct pollfd *p, nfds_t nfds,
							     int patience_ms, int cancelstate,
							     void (*cancelled)(void *),
							     void *argument)
{
	int n, error;

	pthread_cleanup_push(cancelled, argument);
	pthread_setcancelstate(cancelstate, NULL);
	n = poll(p, nfds, patience_ms);
	error = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	errno = error;
	return n;
}

void rs_wake(const struct rs_socket *s)
{
	const uint64_t one = 1;
	int before = errno;

	if (atomic_load(&count) == 0)
		return;
	pthread_mutex_lock(&sleepers_lock);
	for (struct rs_sleeper *w = sleepers; w != NULL; w = w->next) {
		if (w->fd == own_fd || (w->only != NULL && w->only != s))
			continue;
		if (write(w->fd, &one, sizeof(one)) < 0)
			errno = before; /* it is full, so the sleeper wakes anyway */
	}
	pthread_mutex_unlock(&sleepers_lock);
}
