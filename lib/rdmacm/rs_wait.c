/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting in one socket. */
#include <poll.h>
#include <time.h>

#include "rdmacm/rs.h"

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
		rs_wake(s); /* they may be waiting for what is gone now */
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Completions that come at once cost no sleep. */
static bool spin(struct rs_socket *s, rs_condition *is_true)
{
	int64_t end = now_us() + rs_defaults()->spin_us;

	while (s->completions != NULL && now_us() < end) {
		pthread_mutex_unlock(&s->lock);
		pthread_mutex_lock(&s->lock);
		rs_process(s);
		if (is_true(s))
			return true;
	}
	return false;
}

/* Milliseconds until `end`, rounded up; -1: for ever. */
static int time_left(int64_t end)
{
	int64_t left = end - now_us();

	if (end < 0)
		return -1;
	return left <= 0 ? 0 : (int)MIN_OF((left + 999) / 1000, INT32_MAX);
}

/* 0 or an errno */
static int sleep_once(struct rs_socket *s, struct rs_sleeper *w, int patience_ms)
{
	struct pollfd p[2] = { { .fd = w->fd, .events = POLLIN },
			       { .fd = s->completions != NULL ? s->completions->fd : -1,
				 .events = POLLIN } };
	int n, error;

	pthread_mutex_unlock(&s->lock);
	n = poll(p, 2, patience_ms);
	error = n < 0 ? errno : 0;
	pthread_mutex_lock(&s->lock);
	if (n > 0 && p[0].revents != 0)
		rs_sleeper_drain(w);
	if (n > 0 && p[1].revents != 0)
		rs_take_events(s);
	rs_process(s);
	return error;
}

/* `end`: -1: none, and a signal ends it, too. */
static int sleep_until(struct rs_socket *s, rs_condition *is_true, int64_t end)
{
	struct rs_sleeper w;
	int error = rs_sleeper_begin(&w, s);

	if (error != 0)
		return error;
	for (;;) {
		int left = time_left(end);

		rs_arm(s);
		if (is_true(s))
			break;
		error = left == 0 ? EAGAIN : sleep_once(s, &w, left);
		if (error == EINTR && end >= 0)
			error = 0;
		if (error != 0 || is_true(s))
			break;
	}
	rs_sleeper_end(&w);
	return error;
}

int rs_wait(struct rs_socket *s, rs_condition *is_true, bool must_not_wait)
{
	rs_process(s);
	if (is_true(s))
		return 0;
	if (must_not_wait)
		return EAGAIN;
	return spin(s, is_true) ? 0 : sleep_until(s, is_true, -1);
}

int rs_linger(struct rs_socket *s, rs_condition *is_true, int patience_ms)
{
	int64_t end = now_us() + (int64_t)patience_ms * 1000;

	rs_process(s);
	return is_true(s) || spin(s, is_true) ? 0 : sleep_until(s, is_true, end);
}
