/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other program. The two meet at a UNIX socket in a folder, so engines may be in different
 * network namespaces. The end of the socket tells that the other program is gone.
 */
#include "soak.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MEET_S 120
#define TELL_S 60 /* from a failed request until its cause shows */

static int mate = -1;

int mate_socket(void)
{
	return mate;
}

static struct sockaddr_un address_of(const struct soak *s)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (snprintf(a.sun_path, sizeof(a.sun_path), "%s", s->o.path) >= (int)sizeof(a.sun_path))
		die("%s is too long for a socket", s->o.path);
	return a;
}

static void wait_for_client(const struct soak *s, int fd, const struct sockaddr_un *a)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	unlink(a->sun_path);
	if (bind(fd, (const void *)a, sizeof(*a)) != 0 || listen(fd, 1) != 0)
		die("%s: %s: %m", s->o.name, a->sun_path);
	if (poll(&p, 1, MEET_S * 1000) == 1)
		mate = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	close(fd);
	unlink(a->sun_path);
}

void mate_meet(struct soak *s)
{
	struct sockaddr_un a = address_of(s);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("a socket: %m");
	if (s->o.server) {
		wait_for_client(s, fd, &a);
	} else {
		for (int i = 0; i < MEET_S * 50 && mate < 0; i++) {
			if (connect(fd, (const void *)&a, sizeof(a)) == 0)
				mate = fd;
			else
				usleep(20000);
		}
	}
	if (mate < 0)
		die("%s: the other program did not come to %s in %d s", s->o.name, s->o.path,
		    MEET_S);
}

void mate_tell(struct soak *s, const void *what, size_t length)
{
	ssize_t n;

	for (const char *at = what; length > 0 && !s->lost; at += n, length -= (size_t)n) {
		n = send(mate, at, length, MSG_NOSIGNAL);
		if (n <= 0) {
			s->lost = true;
			return;
		}
	}
}

void mate_hear(struct soak *s, void *what, size_t length)
{
	ssize_t n;

	for (char *at = what; length > 0 && !s->lost; at += n, length -= (size_t)n) {
		n = recv(mate, at, length, 0);
		if (n <= 0)
			s->lost = true;
	}
}

/* The events of the device: only one of those that matter can occur. */
static void look_at_device(struct soak *s)
{
	struct ibv_async_event event;

	while (ibv_get_async_event(s->context, &event) == 0) {
		if (event.event_type == IBV_EVENT_DEVICE_FATAL && !s->lost) {
			mate_tell(s, (char[]){ WORD_LOST }, 1);
			s->lost = true;
		}
		ibv_ack_async_event(&event);
	}
}

char mate_word(struct soak *s)
{
	char word = 0;
	ssize_t n;

	look_at_device(s);
	if (s->lost)
		return 0;
	n = recv(mate, &word, 1, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || word == WORD_LOST)
		s->lost = true;
	return n == 1 && !s->lost ? word : 0;
}

void engine_must_be_gone(struct soak *s, const char *what, int error)
{
	for (double end = seconds_now() + TELL_S; !s->lost && seconds_now() < end;) {
		look_at_device(s);
		if (!s->lost)
			usleep(1000);
	}
	if (!s->lost)
		die("%s: %s: %s", s->o.name, what, strerror(error));
}

/* From here on it does not matter what else the other side says: the run ends either way. */
void mate_must_be_lost(struct soak *s, const struct lane *l, const char *what)
{
	bool is_text = true;
	char word = 0;
	ssize_t n;

	for (double end = seconds_now() + TELL_S; !s->lost && seconds_now() < end;) {
		look_at_device(s);
		n = recv(mate, &word, 1, MSG_DONTWAIT);
		if (n == 0 || (n == 1 && is_text && word == WORD_LOST))
			s->lost = true;
		is_text = is_text && !(n == 1 && word == WORD_COUNTS); /* numbers follow */
		if (n < 0)
			usleep(1000);
	}
	if (s->lost)
		return;
	if (l != NULL)
		lane_die(s, l, "%s, and nobody is gone", what);
	die("%s: %s, and nobody is gone", s->o.name, what);
}
