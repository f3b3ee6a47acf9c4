/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/time.h"

volatile sig_atomic_t capture_interrupted;

static void interrupted(int number)
{
	capture_interrupted = 1;
}

void capture_catch_signals(void)
{
	struct sigaction a = { .sa_handler = interrupted };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

static int refuse(int error, char *why, size_t why_size, const char *text)
{
	snprintf(why, why_size, "%s", text);
	return error;
}

/* Sends the command. The reply brings a descriptor, *file. 0, or an errno and `why`. */
static int ask(int fd, const struct request_capture *request, struct reply_capture *reply,
	       int *file, char *why, size_t why_size)
{
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(sizeof(int))];
	} space;
	struct iovec iov = { reply, sizeof(*reply) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &space,
				  .msg_controllen = sizeof(space) };
	const struct cmsghdr *c;
	ssize_t got;

	memset(reply, 0, sizeof(*reply));
	if (send(fd, request, sizeof(*request), MSG_NOSIGNAL) != (ssize_t)sizeof(*request))
		return refuse(errno, why, why_size, "cannot send a command to the engine");
	got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	if (got < (ssize_t)sizeof(reply->h) || reply->h.magic != COMMAND_MAGIC)
		return refuse(EPROTO, why, why_size, "the engine does not answer");
	reply->h.why[sizeof(reply->h.why) - 1] = '\0';
	if (reply->h.error != 0)
		return refuse(reply->h.error, why, why_size,
			      reply->h.why[0] != '\0' ? reply->h.why : strerror(reply->h.error));
	c = CMSG_FIRSTHDR(&message);
	if (got < (ssize_t)sizeof(*reply) || c == NULL || c->cmsg_type != SCM_RIGHTS ||
	    reply->rings == 0 || reply->rings > LIMIT_LCORES)
		return refuse(EPROTO, why, why_size, "the engine's answer is incomplete");
	memcpy(file, CMSG_DATA(c), sizeof(*file));
	return 0;
}

static int map(struct capture_session *s, int file, uint32_t ring)
{
	struct stat st;

	s->octets = capture_octets(s->rings, ring);
	if (fstat(file, &st) != 0 || (size_t)st.st_size < s->octets)
		return EPROTO;
	s->memory = mmap(NULL, s->octets, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (s->memory == MAP_FAILED) {
		s->memory = NULL;
		return errno;
	}
	for (uint32_t i = 0; i < s->rings; i++)
		capture_reader_init(&s->ring[i], s->memory, i, ring);
	return 0;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * TIME_S + (uint64_t)t.tv_nsec;
}

int capture_session_open(struct capture_session *s, const char *path, uint32_t snap, uint32_t ring,
			 char *why, size_t why_size)
{
	struct request_capture request = { .h = { .magic = COMMAND_MAGIC,
						  .version = COMMAND_VERSION,
						  .command = COMMAND_CAPTURE,
						  .length = sizeof(request) },
					   .snap = snap,
					   .ring = ring };
	struct reply_capture reply;
	int error, file = -1;

	memset(s, 0, sizeof(*s));
	s->fd = engine_connect(path);
	if (s->fd < 0)
		return refuse(-s->fd, why, why_size, strerror(-s->fd));
	error = ask(s->fd, &request, &reply, &file, why, why_size);
	if (error == 0) {
		s->rings = reply.rings;
		snprintf(s->port, sizeof(s->port), "%.63s", reply.port);
		s->offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
		error = map(s, file, ring);
		if (error != 0)
			refuse(error, why, why_size, strerror(error));
	}
	if (file >= 0)
		close(file);
	if (error != 0)
		capture_session_close(s);
	return error;
}

bool capture_session_next(struct capture_session *s, struct capture_frame *frame)
{
	struct capture_reader *oldest = NULL;
	struct capture_record r;

	for (uint32_t i = 0; i < s->rings; i++)
		if (capture_reader_peek(&s->ring[i], &r) &&
		    (oldest == NULL || r.at < frame->record.at)) {
			oldest = &s->ring[i];
			frame->record = r;
		}
	if (oldest == NULL)
		return false;
	capture_reader_take(oldest, &frame->record, frame->octets, sizeof(frame->octets));
	frame->record.length = MIN_OF(frame->record.length, (uint32_t)sizeof(frame->octets));
	frame->time = frame->record.at + s->offset;
	return true;
}

void capture_session_wait(struct capture_session *s, int wait)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	/* The engine says nothing on this connection but its end. */
	if (poll(&p, 1, wait) > 0)
		s->gone = true;
}

uint64_t capture_session_lost(const struct capture_session *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->rings; i++)
		n += capture_reader_lost(&s->ring[i]);
	return n;
}

void capture_session_close(struct capture_session *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->memory != NULL)
		munmap(s->memory, s->octets);
	s->fd = -1;
	s->memory = NULL;
}
