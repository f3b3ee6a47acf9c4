/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting in one socket. */
#include <poll.h>
#include <signal.h>

#include "rdmacm/rsockets/rs.h"

void rs_process(struct rs_socket *s)
{
	if (!rs_is_stream(s))
		rs_datagrams_process(s);
	else if (s->completions != NULL && s->state >= RS_CONNECTED)
		rs_stream_process(s);
}

void rs_arm(struct rs_socket *s)
{
	if (s->completions == NULL || s->armed)
		return;
	s->armed = true;
	if (rs_is_stream(s))
		ibv_req_notify_cq(s->cq, 0);
	else
		rs_datagrams_arm(s);
	rs_process(s);
}

void rs_take_events(struct rs_socket *s)
{
	struct ibv_cq *cq;
	void *context;

	if (s->completions == NULL)
		return;
	while (ibv_get_cq_event(s->completions, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		s->armed = false;
	}
	if (!s->armed)
		rs_wake(s); /* they may poll for an event that this thread has taken */
}

/* Spins before sleeping. A completion that comes at once then costs no sleep. */
static bool spin(struct rs_socket *s, rs_condition *is_true)
{
	int64_t end = rs_now_us() + rs_defaults()->spin_us;

	while (s->completions != NULL && rs_now_us() < end) {
		pthread_mutex_unlock(&s->lock);
		pthread_mutex_lock(&s->lock);
		rs_process(s);
		if (is_true(s))
			return true;
	}
	return false;
}

/* Milliseconds until `end`, rounded up. -1: for ever. */
static int time_left(int64_t end)
{
	int64_t left = end - rs_now_us();

	if (end < 0)
		return -1;
	return left <= 0 ? 0 : (int)MIN_OF((left + 999) / 1000, INT32_MAX);
}

/* ---- one direction: one thread at a time, which may be cancelled while it sleeps ---- */

static __thread pthread_mutex_t *held; /* the send_lock or receive_lock of the running call */

void rs_direction_begin(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	held = lock;
}

void rs_direction_end(void)
{
	pthread_mutex_t *lock = held;

	held = NULL;
	pthread_mutex_unlock(lock);
}

struct sleep {
	struct rs_socket *s;
	struct rs_sleeper sleeper;
	int cancelstate; /* the program's; cancelling is disabled while a lock is held */
};

/* Runs if the thread is cancelled. */
static void cancelled(void *argument)
{
	struct sleep *z = argument;

	rs_sleeper_end(&z->sleeper);
	if (held != NULL)
		rs_direction_end();
	rs_put(z->s);
}

/* Returns 0 or an errno. */
static int sleep_once(struct sleep *z, int patience_ms)
{
	struct rs_socket *s = z->s;
	struct pollfd p[2] = { { .fd = z->sleeper.fd, .events = POLLIN },
			       { .fd = s->completions != NULL ? s->completions->fd : -1,
				 .events = POLLIN } };
	int n, error;

	pthread_mutex_unlock(&s->lock);
	n = rs_poll_cancellable(p, 2, patience_ms, z->cancelstate, cancelled, z);
	error = n < 0 ? errno : 0;
	pthread_mutex_lock(&s->lock);
	if (n > 0 && p[0].revents != 0)
		rs_sleeper_drain(&z->sleeper);
	if (n > 0 && p[1].revents != 0)
		rs_take_events(s);
	rs_process(s);
	return error;
}

/* A thread gets these for what it does itself, so they do not end its sleep. */
static bool is_of_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
	       signal == SIGTRAP || signal == SIGSYS || signal == SIGABRT;
}

/* Whether this thread may have run a handler of the signal, and its flags. */
static bool has_handler(int signal, const sigset_t *blocked, int *flags)
{
	struct sigaction act;

	if (is_of_fault(signal) || sigismember(blocked, signal) != 0 ||
	    sigaction(signal, NULL, &act) != 0 || act.sa_handler == SIG_DFL ||
	    act.sa_handler == SIG_IGN)
		return false;
	*flags = act.sa_flags;
	return true;
}

/*
 * recv(2) and its like go on after a handler with SA_RESTART, and poll(2) never does (signal(7)). A
 * signal has ended poll(2), and nothing says which one. So the call goes on if all handlers that may
 * have run restart calls. If there is none, it was set for one signal only (SA_RESETHAND), and the
 * call ends.
 */
static bool handlers_restart_calls(void)
{
	bool restart = false;
	sigset_t blocked;
	int flags;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	for (int signal = 1; signal <= SIGRTMAX; signal++) {
		if (!has_handler(signal, &blocked, &flags))
			continue;
		if ((flags & SA_RESTART) == 0)
			return false;
		restart = true;
	}
	return restart;
}

/* `end` -1: there is none, and then a signal may end the sleep, too. */
static int sleep_until(struct sleep *z, rs_condition *is_true, int64_t end)
{
	int error = rs_sleeper_begin(&z->sleeper, z->s);

	if (error != 0)
		return error;
	for (;;) {
		int left = time_left(end);

		rs_arm(z->s);
		if (is_true(z->s))
			break;
		error = left == 0 ? EAGAIN : sleep_once(z, left);
		if (error == EINTR && (end >= 0 || handlers_restart_calls()))
			error = 0;
		if (error != 0 || is_true(z->s))
			break;
	}
	rs_sleeper_end(&z->sleeper);
	return error;
}

static int sleep_in(struct rs_socket *s, rs_condition *is_true, int64_t end)
{
	struct sleep z = { .s = s };
	int error, before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	z.cancelstate = end < 0 ? before : PTHREAD_CANCEL_DISABLE;
	error = sleep_until(&z, is_true, end);
	pthread_setcancelstate(before, NULL);
	return error;
}

int rs_wait(struct rs_socket *s, rs_condition *is_true, bool must_not_wait)
{
	rs_process(s);
	if (is_true(s))
		return 0;
	if (must_not_wait)
		return EAGAIN;
	return spin(s, is_true) ? 0 : sleep_in(s, is_true, -1);
}

int rs_linger(struct rs_socket *s, rs_condition *is_true, int patience_ms)
{
	int64_t end = rs_now_us() + (int64_t)patience_ms * 1000;

	rs_process(s);
	return is_true(s) || spin(s, is_true) ? 0 : sleep_in(s, is_true, end);
}
