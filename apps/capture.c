/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce capture: writes the frames of an engine into a file, while it runs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture_session.h"
#include "commands.h"
#include "json.h"
#include "options.h"
#include "pcapng.h"

#define WAIT_MS 5
#define MEBI	20 /* shift */

static const char usage[] =
	"usage: uroce capture [--socket PATH] [--count N] [--seconds N] [--snap N] [--buffer N]\n"
	"                     [--json] FILE\n"
	"\n"
	"Writes the frames that an engine sends and receives into FILE (pcapng, for Wireshark and\n"
	"tshark; - is standard output), until SIGINT, --count or --seconds. Frames between programs\n"
	"of the same engine are there, too; they have an ICRC of 0. A frame that finds no room is\n"
	"lost to the capture, and counted; the engine does not wait. Only root and the engine's own\n"
	"user may capture.\n"
	"\n"
	"  --socket PATH  use the engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  --count N      end after N frames\n"
	"  --seconds N    end after N seconds\n"
	"  --snap N       keep N octets of each frame, 64 .. 65535 (default 65535)\n"
	"  --buffer N     MiB between each lcore and the file, 1 .. 256, a power of two (default 4)\n"
	"  --json         print what was captured as JSON\n";

enum interface {
	INTERFACE_PORT,
	INTERFACE_HERE,
};

struct capture_options {
	const char *socket;
	uint64_t count; /* 0: no end */
	double seconds; /* likewise */
	uint32_t snap;
	uint32_t buffer; /* MiB */
	bool json;
	const char *file;
};

static const char *read_buffer(void *into, const char *value)
{
	char *end;
	unsigned long v = strtoul(value, &end, 10);

	if (value[0] < '0' || value[0] > '9' || *end != '\0' || v < 1 || v > 256 ||
	    (v & (v - 1)) != 0)
		return "must be a power of two in 1 .. 256";
	*(uint32_t *)into = (uint32_t)v;
	return NULL;
}

static bool parse(int argc, char **argv, struct capture_options *o, int *status)
{
	const struct option_row rows[] = {
		{ "socket", .text = &o->socket },
		{ "count", .u64 = &o->count, .least = 1, .most = UINT64_MAX },
		{ "seconds", .real = &o->seconds, .from = 0.001, .to = 1e9 },
		{ "snap", .u32 = &o->snap, .least = LIMIT_CAPTURE_SNAP_MIN,
		  .most = LIMIT_CAPTURE_SNAP },
		{ "buffer", .read = read_buffer, .into = &o->buffer },
		{ "json", .flag = &o->json },
		{ NULL },
	};
	int rest;

	if (!options_read("capture", usage, rows, argc, argv, &rest, status))
		return false;
	if (rest + 1 == argc && argv[rest][0] != '\0') {
		o->file = argv[rest];
		if (!o->json || strcmp(o->file, "-") != 0)
			return true;
		*status = options_refuse("capture", "--json and - cannot be combined");
		return false;
	}
	*status = options_refuse("capture", rest == argc ? "no file given: uroce capture FILE"
							 : "more than one file given");
	return false;
}

/* The payload is somebody's: the file is for its owner alone. */
static FILE *open_file(const char *path)
{
	int fd;

	if (strcmp(path, "-") == 0)
		return stdout;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd < 0 ? NULL : fdopen(fd, "w");
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

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct result {
	uint64_t frames, lost;
};

/* Returns 0, or an errno of the file. */
static int write_all(struct capture_session *s, const struct capture_options *o, FILE *f,
		     struct result *result)
{
	static struct capture_frame frame;
	double end = now() + o->seconds;
	bool last = false; /* one more look: what came before the end belongs to the capture */

	while (result->frames < o->count || o->count == 0) {
		if (capture_session_next(s, &frame)) {
			write_frame(f, &frame);
			result->frames++;
			if (ferror(f))
				return errno;
			continue;
		}
		if (last)
			break;
		if (fflush(f) != 0)
			return errno;
		capture_session_wait(s, WAIT_MS);
		last = s->gone || capture_interrupted || (o->seconds > 0 && now() >= end);
	}
	return 0;
}

static void report(const struct capture_options *o, const struct result *r)
{
	struct json j = { .out = stdout };

	if (o->json) {
		json_open(&j, NULL, '{');
		json_integer(&j, "frames", r->frames);
		json_integer(&j, "lost", r->lost);
		json_close(&j, '}');
		return;
	}
	fprintf(stderr, "uroce capture: %" PRIu64 " frames captured, %" PRIu64 " lost\n", r->frames,
		r->lost);
}

static int capture(struct capture_session *s, const struct capture_options *o, FILE *f)
{
	struct result r = { 0 };
	struct timespec t;
	int error;

	pcapng_begin(f, "uroce capture");
	pcapng_interface(f, s->port[0] != '\0' ? s->port : "no port", o->snap);
	pcapng_interface(f, "same host", o->snap);
	if (fflush(f) != 0)
		return errno;
	error = write_all(s, o, f, &r);
	r.lost = capture_session_lost(s);
	clock_gettime(CLOCK_REALTIME, &t);
	pcapng_statistics(f, INTERFACE_PORT, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec,
			  r.lost);
	if (error == 0 && fflush(f) != 0)
		error = errno;
	if (error == 0)
		report(o, &r);
	return error;
}

int command_capture(int argc, char **argv)
{
	struct capture_options o = { .snap = LIMIT_CAPTURE_SNAP,
				     .buffer = LIMIT_CAPTURE_RING >> MEBI };
	static struct capture_session s;
	struct engine_place where;
	struct reply_device device;
	char why[256] = "";
	int error, status;
	FILE *f;

	if (!parse(argc, argv, &o, &status))
		return status;
	capture_catch_signals();
	error = engine_locate(o.socket, &where, &device, why, sizeof(why));
	if (error == 0)
		error = capture_session_open(&s, where.path, o.snap, o.buffer << MEBI, why,
					     sizeof(why));
	if (error != 0) {
		fprintf(stderr, "uroce capture: %s\n", why);
		return EXIT_FAILED;
	}
	f = open_file(o.file);
	error = f == NULL ? errno : capture(&s, &o, f);
	if (f != NULL && f != stdout && fclose(f) != 0 && error == 0)
		error = errno;
	if (s.gone)
		fprintf(stderr, "uroce capture: the engine has ended\n");
	capture_session_close(&s);
	if (error != 0)
		fprintf(stderr, "uroce capture: %s: %s\n", o.file, strerror(error));
	return error != 0 ? EXIT_FAILED : EXIT_DONE;
}
