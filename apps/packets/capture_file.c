/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "pcapng.h"

#define FRAMES_AT_ONCE 1024u

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
