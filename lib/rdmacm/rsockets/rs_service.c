/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that does everything for which no call of the program waits. The first socket that
 * needs the thread starts it, and it stays. The child of a fork starts its own.
 */
#include <signal.h>
#include <sys/epoll.h>

#include "base/loading.h"
#include "rdmacm/rsockets/rs.h"

static pthread_mutex_t service_lock = PTHREAD_MUTEX_INITIALIZER;
static int epoll = -1;
static pid_t pid; /* of the process whose thread runs; 0: none does */

static void serve(int owner)
{
	struct rs_socket *s = rs_get(owner);

	if (s == NULL)
		return;
	if (!rs_is_stream(s)) {
		rs_datagrams_progress(s);
	} else if (s->state == RS_LISTENING) { /* only this thread starts or stops listening */
		rs_listener_progress(s);
	} else {
		rs_keepalive_progress(s);
		rs_connection_progress(s);
	}
	rs_put(s);
}

static void *run(void *argument)
{
	struct epoll_event events[16];
	int n;

	(void)argument;
	for (;;) {
		n = epoll_wait(epoll, events, ARRAY_SIZE(events), -1);
		for (int i = 0; i < n; i++)
			serve(events[i].data.fd);
	}
	return NULL;
}

/* The thread blocks all signals, because they are the program's. */
static int start_thread(void)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attr, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

/*
 * Called in the child of a fork. Closes the parent's descriptor now, because later the program may
 * have closed it and opened a file of that number. The child may have its parent's pid, in a
 * namespace of its own.
 */
static void forget(void)
{
	pthread_mutex_init(&service_lock, NULL);
	if (epoll >= 0)
		close(epoll);
	epoll = -1;
	pid = 0;
}

static AT_LOAD(LOAD_RSOCKETS) void prepare_for_forks(void)
{
	pthread_atfork(NULL, NULL, forget);
}

/* The caller holds service_lock. */
static int start(void)
{
	int error;

	if (pid == getpid())
		return 0;
	if (epoll >= 0)
		close(epoll);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		return errno;
	error = start_thread();
	if (error == 0)
		pid = getpid();
	return error;
}

int rs_service_watch(int fd, int owner)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = owner };
	int error;

	pthread_mutex_lock(&service_lock);
	error = start();
	if (error == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) != 0)
		error = errno;
	pthread_mutex_unlock(&service_lock);
	return error;
}

void rs_service_pause(int fd, int owner, bool paused)
{
	struct epoll_event e = { .events = paused ? 0 : EPOLLIN, .data.fd = owner };

	epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &e);
}

void rs_service_unwatch(int fd)
{
	struct epoll_event none = { 0 };

	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &none);
}
