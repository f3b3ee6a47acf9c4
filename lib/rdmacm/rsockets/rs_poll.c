/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for several descriptors, of rsockets and others. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>

#include "config/limits.h"
#include "rdmacm/rsockets/rs.h"

/* ---- the events of one socket ---- */

static short revents_of_stream(struct rs_socket *s, short events)
{
	short found = 0;

	if (s->state == RS_LISTENING)
		return s->stream.ready != NULL ? events & (POLLIN | POLLRDNORM) : 0;
	if (s->state == RS_REFUSED)
		return (short)((events & (POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM)) | POLLERR);
	if (s->state < RS_CONNECTED)
		return 0;
	if (rs_has_data_or_gone(s))
		found |= events & (POLLIN | POLLRDNORM);
	if (!s->readable)
		found |= events & POLLRDHUP;
	if (rs_may_send_or_gone(s))
		found |= events & (POLLOUT | POLLWRNORM);
	/*
	 * Unread data comes first, because programs stop reading when they see one of these events.
	 */
	if (s->state != RS_CONNECTED && !rs_inflow_waits(&s->stream.in))
		found |= s->state == RS_DISCONNECTED ? POLLHUP : POLLERR;
	return found;
}

static short revents_of_datagrams(struct rs_socket *s, short events)
{
	short found = 0;

	if (rs_datagram_waits(s) || !s->readable)
		found |= events & (POLLIN | POLLRDNORM);
	if (rs_datagram_may_go(s))
		found |= events & (POLLOUT | POLLWRNORM);
	if (!s->readable)
		found |= (events & POLLRDHUP) | (s->writable ? 0 : POLLHUP);
	/* Unread datagrams come first. */
	if (rs_datagram_waits(s))
		return found;
	if (s->datagrams.broken != 0)
		found |= (events & (POLLIN | POLLRDNORM)) | POLLERR;
	return s->error != 0 ? found | POLLERR : found;
}

short rs_revents(struct rs_socket *s, short events)
{
	if (s->closed)
		return POLLNVAL;
	return rs_is_stream(s) ? revents_of_stream(s, events) : revents_of_datagrams(s, events);
}

/* ---- a set of sockets ---- */

struct set {
	struct pollfd *fds; /* the program's */
	nfds_t count;
	struct rs_socket **socket; /* the rsocket of each entry, or NULL */
	struct pollfd *real; /* what poll(2) gets: `count` entries, and the sleeper's */
	struct rs_socket *few_socket[LIMIT_RS_POLL_FEW];
	struct pollfd few_real[LIMIT_RS_POLL_FEW + 1];
};

static int set_find_room(struct set *set)
{
	set->socket = set->few_socket;
	set->real = set->few_real;
	if (set->count <= LIMIT_RS_POLL_FEW) {
		memset(set->few_real, 0, sizeof(set->few_real));
		return 0;
	}
	set->socket = calloc(set->count, sizeof(set->socket[0]));
	set->real = calloc(set->count + 1, sizeof(set->real[0]));
	return set->socket == NULL || set->real == NULL ? ENOMEM : 0;
}

static void set_leave_room(struct set *set)
{
	if (set->count <= LIMIT_RS_POLL_FEW)
		return;
	free(set->socket);
	free(set->real);
}

static int set_open(struct set *set, struct pollfd *fds, nfds_t count)
{
	set->fds = fds;
	set->count = count;
	if (set_find_room(set) != 0) {
		set_leave_room(set);
		return ENOMEM;
	}
	for (nfds_t i = 0; i < count; i++)
		set->socket[i] = fds[i].fd >= 0 ? rs_get(fds[i].fd) : NULL;
	return 0;
}

static void set_close(struct set *set)
{
	for (nfds_t i = 0; i < set->count; i++)
		if (set->socket[i] != NULL)
			rs_put(set->socket[i]);
	set_leave_room(set);
}

/* Looks for events of one socket. Later events reach this thread through its sleeper. */
static void look_at_socket(struct rs_socket *s, struct pollfd *fd, struct pollfd *real, bool arm)
{
	pthread_mutex_lock(&s->lock);
	if (real->revents != 0)
		rs_take_events(s);
	rs_process(s);
	if (arm)
		rs_arm(s);
	fd->revents = rs_revents(s, fd->events);
	*real = (struct pollfd){ .fd = arm && s->completions != NULL ? s->completions->fd : -1,
				 .events = POLLIN };
	pthread_mutex_unlock(&s->lock);
}

/* Returns how many sockets have events. `arm`: their completion channels will be polled. */
static int look(struct set *set, bool arm)
{
	int found = 0;

	for (nfds_t i = 0; i < set->count; i++) {
		if (set->socket[i] == NULL)
			continue;
		look_at_socket(set->socket[i], &set->fds[i], &set->real[i], arm);
		found += set->fds[i].revents != 0;
	}
	return found;
}

static void fill_others(struct set *set)
{
	for (nfds_t i = 0; i < set->count; i++)
		if (set->socket[i] == NULL)
			set->real[i] = (struct pollfd){ .fd = set->fds[i].fd,
							.events = set->fds[i].events };
}

static int take_others(struct set *set)
{
	int found = 0;

	for (nfds_t i = 0; i < set->count; i++) {
		if (set->socket[i] != NULL)
			continue;
		set->fds[i].revents = set->real[i].revents;
		found += set->real[i].revents != 0;
	}
	return found;
}

/* Looks at everything without waiting. Returns how many entries have events, or -1 with errno. */
static int look_once(struct set *set)
{
	int found = look(set, false);

	fill_others(set);
	if (poll(set->real, set->count, 0) < 0)
		return -1;
	return found + take_others(set);
}

/* ---- time ---- */

static int patience(int64_t end)
{
	int64_t left = end < 0 ? INT64_MAX : (end - rs_now_us() + 999) / 1000;

	return (int)MIN_OF(MAX_OF(left, 0), (int64_t)rs_defaults()->wake_up_ms);
}

/* ---- sleeping; the thread may be cancelled meanwhile ---- */

struct sleep {
	struct set *set;
	struct rs_sleeper sleeper;
	int cancelstate; /* the program's; cancelling is disabled while a lock is held */
};

/* Runs if the thread is cancelled. */
static void cancelled(void *argument)
{
	struct sleep *z = argument;

	rs_sleeper_end(&z->sleeper);
	set_close(z->set);
}

static int sleep_once(struct sleep *z, int patience_ms)
{
	struct set *set = z->set;
	int found = look(set, true);

	fill_others(set);
	set->real[set->count] = (struct pollfd){ .fd = z->sleeper.fd, .events = POLLIN };
	if (rs_poll_cancellable(set->real, set->count + 1, found > 0 ? 0 : patience_ms,
				z->cancelstate, cancelled, z) < 0)
		return -1;
	if (set->real[set->count].revents != 0)
		rs_sleeper_drain(&z->sleeper);
	return look(set, false) + take_others(set);
}

static int sleep_until(struct set *set, int64_t end)
{
	struct sleep z = { .set = set };
	int found, error = rs_sleeper_begin(&z.sleeper, NULL);

	if (error != 0)
		return result(error);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &z.cancelstate);
	do {
		found = sleep_once(&z, patience(end));
	} while (found == 0 && (end < 0 || rs_now_us() < end));
	rs_sleeper_end(&z.sleeper);
	pthread_setcancelstate(z.cancelstate, NULL);
	return found;
}

/* `timeout_us` -1: waits for ever. */
static int poll_set(struct set *set, int64_t timeout_us)
{
	int64_t begin = rs_now_us();
	int64_t end = timeout_us < 0 ? -1 : begin + timeout_us;
	int found;

	do {
		found = look_once(set);
	} while (found == 0 && timeout_us != 0 && rs_now_us() - begin <= rs_defaults()->spin_us);
	if (found == 0 && timeout_us != 0)
		found = sleep_until(set, end);
	return found;
}

static int poll_for(struct pollfd *fds, nfds_t count, int64_t timeout_us)
{
	struct set set;
	int found, before, error;

	if (fds == NULL && count > 0)
		return result(EFAULT);
	error = set_open(&set, fds, count);
	if (error != 0)
		return result(error);
	found = poll_set(&set, timeout_us);
	before = errno;
	set_close(&set);
	errno = before;
	return found;
}

EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll_for(fds, nfds, timeout < 0 ? -1 : (int64_t)timeout * 1000);
}

/* ---- select ---- */

#define SECONDS_MAX INT32_MAX /* longer timeouts are cut to this */

static bool is_in(int fd, const fd_set *set)
{
	return set != NULL && FD_ISSET(fd, set);
}

static nfds_t from_sets(struct pollfd *fds, int nfds, const fd_set *r, const fd_set *w,
			const fd_set *e)
{
	nfds_t count = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short events = (is_in(fd, r) ? POLLIN : 0) | (is_in(fd, w) ? POLLOUT : 0) |
			       (is_in(fd, e) ? POLLPRI : 0);

		if (events != 0)
			fds[count++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return count;
}

/* As in Linux, a set is about these (fs/select.c). What select() does not know is an error. */
static short events_of_sets(short asked)
{
	return (short)((asked & POLLIN ? POLLIN | POLLHUP | POLLERR : 0) |
		       (asked & POLLOUT ? POLLOUT | POLLERR : 0) | (asked & POLLPRI) | POLLNVAL);
}

/*
 * Returns how many entries have events that a set is about. poll(2) reports a hangup or an error
 * even if none is, and again at once. So such entries get a negative descriptor, and are polled
 * no more.
 */
static int drop_others(struct pollfd *fds, nfds_t count)
{
	int found = 0;

	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].revents & events_of_sets(fds[i].events))
			found++;
		else if (fds[i].revents != 0)
			fds[i].fd = ~fds[i].fd;
	}
	return found;
}

static int poll_for_sets(struct pollfd *fds, nfds_t count, int64_t timeout_us)
{
	int64_t end = rs_now_us() + timeout_us;
	int found = poll_for(fds, count, timeout_us);

	while (found > 0 && drop_others(fds, count) == 0) {
		if (timeout_us > 0)
			timeout_us = MAX_OF(end - rs_now_us(), 0);
		found = poll_for(fds, count, timeout_us);
	}
	return found;
}

static int keep_if(bool it_is, int fd, fd_set *set)
{
	if (!is_in(fd, set))
		return 0;
	if (!it_is)
		FD_CLR(fd, set);
	return it_is;
}

static int to_sets(const struct pollfd *fds, nfds_t count, fd_set *r, fd_set *w, fd_set *e)
{
	int found = 0;

	for (nfds_t i = 0; i < count; i++) {
		int fd = fds[i].fd < 0 ? ~fds[i].fd : fds[i].fd;
		short events = fds[i].revents;

		found += keep_if(events & events_of_sets(POLLIN), fd, r);
		found += keep_if(events & events_of_sets(POLLOUT), fd, w);
		found += keep_if(events & events_of_sets(POLLPRI), fd, e);
	}
	return found;
}

static bool one_is_invalid(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].revents & POLLNVAL)
			return true;
	return false;
}

EXPORT int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		   struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	int64_t timeout_us = -1;
	nfds_t count;
	int found;

	if (nfds < 0 || nfds > FD_SETSIZE)
		return result(EINVAL);
	if (timeout != NULL) {
		if (timeout->tv_sec < 0 || timeout->tv_usec < 0)
			return result(EINVAL);
		timeout_us = (int64_t)MIN_OF(timeout->tv_sec, SECONDS_MAX) * 1000000 +
			     MIN_OF(timeout->tv_usec, SECONDS_MAX);
	}
	count = from_sets(fds, nfds, readfds, writefds, exceptfds);
	found = poll_for_sets(fds, count, timeout_us);
	if (found < 0)
		return -1;
	if (one_is_invalid(fds, count))
		return result(EBADF);
	return to_sets(fds, count, readfds, writefds, exceptfds);
}
