/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that does everything for which no call of the program waits. The first socket that
 * needs the thread starts it, and it stays. The child of a fork starts its own.
 */
#include <signal.h>
#include <sys/epoll.h>

#include "base/loading.h"
#include "client/own_file.h"
#include "rdmacm/rsockets/rs.h"

static pthread_mutex_t service_lock = PTHREAD_MUTEX_INITIALIZER;
static int epoll = -1;
static int mark = -1; /* a socket that only this epoll has: see epoll_is_ours */
static struct own_file mark_file;
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

/* Some programs close descriptors that they do not know. All epoll files have the same inode. */
static bool epoll_is_ours(void)
{
	struct epoll_event none = { .data.fd = -1 };

	return own_file_is(&mark_file, mark) && epoll_ctl(epoll, EPOLL_CTL_MOD, mark, &none) == 0;
}

static void close_epoll(void)
{
	if (epoll_is_ours())
		close(epoll);
	own_file_close(&mark_file, mark);
	epoll = mark = -1;
}

/* 0 or an errno, and then there is none. */
static int open_epoll(void)
{
	struct epoll_event none = { .data.fd = -1 };
	int error;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		return errno;
	mark = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (mark >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, mark, &none) == 0) {
		mark_file = own_file_of(mark);
		return 0;
	}
	error = errno;
	if (mark >= 0)
		close(mark);
	close(epoll);
	epoll = mark = -1;
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
	close_epoll();
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
	close_epoll();
	error = open_epoll();
	if (error == 0)
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
