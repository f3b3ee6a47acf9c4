/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keep-alives of a stream (SO_KEEPALIVE, TCP_KEEPIDLE): an idle stream notices that its peer's host
 * or engine is gone. A timer has the service thread send a message without data.
 *
 *	timer expires -> RS_KEEPALIVE -> the peer's queue pair acknowledges it, its program need not run
 *				     \-> nobody does: the retries run out, and the stream fails
 *					 with ETIMEDOUT, as if data had not been acknowledged
 *
 * What is under way is acknowledged or not by itself, so then nothing is sent.
 */
#include <sys/timerfd.h>
#include <unistd.h>

#include "rdmacm/rsockets/rs.h"

static int open_timer(struct rs_socket *s)
{
	int error;

	s->alive = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (s->alive < 0)
		return errno;
	error = rs_service_watch(s->alive, s->fd);
	if (error != 0)
		rs_keepalive_end(s);
	return error;
}

int rs_keepalive_follow(struct rs_socket *s)
{
	time_t seconds =
		s->state == RS_CONNECTED ? s->options.keep_idle : 0; /* 0: it stands still */
	struct itimerspec t = { { .tv_sec = seconds }, { .tv_sec = seconds } };
	int error = 0;

	if (!rs_is_stream(s) || !s->options.keep_alive || s->closed) {
		rs_keepalive_end(s);
		return 0;
	}
	if (s->alive < 0)
		error = open_timer(s);
	if (error == 0)
		timerfd_settime(s->alive, 0, &t, NULL);
	return error;
}

void rs_keepalive_end(struct rs_socket *s)
{
	if (s->alive < 0)
		return;
	rs_service_unwatch(s->alive);
	close(s->alive);
	s->alive = -1;
}

void rs_keepalive_progress(struct rs_socket *s)
{
	uint64_t expirations;

	pthread_mutex_lock(&s->lock);
	if (s->alive >= 0 && read(s->alive, &expirations, sizeof(expirations)) > 0) {
		rs_process(s); /* the last one may be acknowledged by now, or the stream is gone */
		if (s->state != RS_CONNECTED)
			rs_keepalive_end(s);
		else if (rs_all_is_sent(s))
			rs_stream_post(s, rs_message(RS_CONTROL, RS_KEEPALIVE), RS_POSTED_CONTROL);
	}
	pthread_mutex_unlock(&s->lock);
}
