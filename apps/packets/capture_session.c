/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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
	/*
	 * SA_RESTART: a write that waits for its reader goes on. SA_RESETHAND: if it waits for ever,
	 * a second signal ends the command.
	 */
	struct sigaction a = { .sa_handler = interrupted, .sa_flags = SA_RESTART | SA_RESETHAND };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

static int refuse(int error, char *why, size_t why_size, const char *text)
{
	snprintf(why, why_size, "%s", text);
	return error;
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
	struct request_capture request = { .h = { .command = COMMAND_CAPTURE,
						  .length = sizeof(request) },
					   .snap = snap,
					   .ring = ring };
	struct reply_capture reply;
	int error, file = -1;

	memset(s, 0, sizeof(*s));
	s->fd = engine_connect(path);
	if (s->fd < 0)
		return refuse(-s->fd, why, why_size, strerror(-s->fd));
	error = engine_call_for_file(s->fd, &request.h, &reply.h, sizeof(reply), &file, why,
				     why_size);
	if (error == 0 && (file < 0 || reply.rings == 0 || reply.rings > LIMIT_LCORES))
		error = refuse(EPROTO, why, why_size, "the engine's answer is incomplete");
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
	if (oldest == NULL || (s->until != 0 && frame->record.at > s->until))
		return false;
	capture_reader_take(oldest, &frame->record, frame->octets, sizeof(frame->octets));
	frame->record.length = MIN_OF(frame->record.length, (uint32_t)sizeof(frame->octets));
	frame->time = frame->record.at + s->offset;
	return true;
}

void capture_session_end(struct capture_session *s)
{
	if (s->until == 0)
		s->until = clock_ns(CLOCK_MONOTONIC);
}

void capture_session_wait(struct capture_session *s, int wait)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	/* The only message of the engine on this connection is its end. */
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
