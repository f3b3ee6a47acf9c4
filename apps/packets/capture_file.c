/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/time.h"
#include "pcapng.h"

#define FRAMES_AT_ONCE	1024u
#define READER_RESTS_MS 5000

enum interface {
	INTERFACE_PORT,
	INTERFACE_HERE,
};

bool capture_file_is_pipe(const char *path)
{
	struct stat st;

	return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

FILE *capture_file_open(const char *path)
{
	int fd;

	if (strcmp(path, "-") == 0)
		return stdout;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* ---- a reader that may stop to read ---- */

struct bounded {
	FILE *to;
	uint64_t end; /* ns of CLOCK_MONOTONIC */
	int error; /* why it has failed, or 0 */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * TIME_S + (uint64_t)t.tv_nsec;
}

/* Until the end, and then for as long as a reader may rest. False: there is no room yet. */
static bool await_room(const struct bounded *b)
{
	struct pollfd p = { .fd = fileno(b->to), .events = POLLOUT };

	for (;;) {
		uint64_t now = now_ns();
		uint64_t ms = (now < b->end ? (b->end - now) / TIME_MS : 0) + READER_RESTS_MS;
		int n = poll(&p, 1, (int)MIN_OF(ms, (uint64_t)INT_MAX));

		if (n > 0 || (n < 0 && errno != EINTR))
			return true; /* write() says what is wrong */
		if (n == 0 && now_ns() >= b->end)
			return false;
	}
}

/* In pieces for which a pipe with any room has enough, so that none of them blocks. */
static ssize_t write_bounded(void *bounded, const char *octets, size_t size)
{
	struct bounded *b = bounded;
	size_t done = 0;

	while (done < size && b->error == 0) {
		ssize_t n = 0;

		if (!await_room(b))
			b->error = ETIMEDOUT;
		else
			n = write(fileno(b->to), octets + done, MIN_OF(size - done, PIPE_BUF));
		if (n < 0 && errno != EINTR)
			b->error = errno;
		done += n < 0 ? 0 : (size_t)n;
	}
	if (b->error != 0)
		errno = b->error;
	return (ssize_t)done;
}

static int close_bounded(void *bounded)
{
	struct bounded *b = bounded;
	int ret = b->to != stdout ? fclose(b->to) : 0;

	free(b);
	return ret;
}

FILE *capture_file_bound(FILE *f, double seconds)
{
	const cookie_io_functions_t calls = { .write = write_bounded, .close = close_bounded };
	struct bounded *b = malloc(sizeof(*b));
	FILE *bounded;

	if (b == NULL)
		return NULL;
	*b = (struct bounded){ .to = f, .end = now_ns() + (uint64_t)(seconds * (double)TIME_S) };
	bounded = fopencookie(b, "w", calls);
	if (bounded == NULL)
		free(b);
	return bounded;
}

int capture_file_begin(FILE *f, const struct capture_session *s, const char *program, uint32_t snap)
{
	pcapng_begin(f, program);
	pcapng_interface(f, s->port[0] != '\0' ? s->port : "no port", snap);
	pcapng_interface(f, "same host", snap);
	return fflush(f) != 0 ? errno : 0;
}

static void write_frame(FILE *f, const struct capture_frame *frame)
{
	const struct capture_record *r = &frame->record;

	pcapng_frame(f, r->way == CAPTURE_HERE ? INTERFACE_HERE : INTERFACE_PORT, frame->time,
		     frame->octets, r->length, r->whole,
		     r->way == CAPTURE_SENT	  ? PCAPNG_OUTBOUND
		     : r->way == CAPTURE_RECEIVED ? PCAPNG_INBOUND
						  : PCAPNG_UNKNOWN);
}

int capture_file_take(FILE *f, struct capture_session *s, uint64_t most,
		      struct capture_counts *counts, bool *more)
{
	static struct capture_frame frame;

	*more = true;
	for (uint32_t i = 0; i < FRAMES_AT_ONCE && (counts->frames < most || most == 0); i++) {
		*more = capture_session_next(s, &frame);
		if (!*more)
			break;
		write_frame(f, &frame);
		counts->frames++;
		if (ferror(f))
			return errno;
	}
	return 0;
}

int capture_file_end(FILE *f, const struct capture_session *s, struct capture_counts *counts)
{
	struct timespec t;

	counts->lost = capture_session_lost(s);
	clock_gettime(CLOCK_REALTIME, &t);
	pcapng_statistics(f, INTERFACE_PORT, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec,
			  counts->lost);
	return fflush(f) != 0 ? errno : 0;
}
