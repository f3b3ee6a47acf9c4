/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce capture: writes the frames of an engine into a file, while it runs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture_file.h"
#include "commands.h"
#include "config/limits.h"
#include "json.h"
#include "options.h"
#include "output.h"

#define MEBI 20 /* shift */

static const char usage[] =
	"usage: uroce capture [--socket PATH] [--count N] [--seconds N] [--snap N] [--buffer N]\n"
	"                     [--json] FILE\n"
	"\n"
	"Writes the frames that an engine sends and receives into FILE (pcapng, for Wireshark and\n"
	"tshark; - is standard output), until SIGINT, --count or --seconds. Frames between programs\n"
	"of the same engine are included; they have an ICRC of 0. Frames that do not\n"
	"fit into the buffer are missing in FILE, and counted; the engine does not wait. Only root and\n"
	"the engine's own user may capture.\n"
	"\n"
	"  --socket PATH  use the engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  --count N      end after N frames\n"
	"  --seconds N    end after N seconds\n"
	"  --snap N       keep N octets of each frame, 64 .. 65535 (default 65535)\n"
	"  --buffer N     MiB between each lcore and the file, 1 .. 256, a power of two (default 4)\n"
	"  --json         print what was captured as JSON\n";

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

	if (!options_read_word("capture", usage, rows, argc, argv, "FILE", "file", &o->file,
			       status))
		return false;
	if (!o->json || strcmp(o->file, "-") != 0)
		return true;
	*status = options_refuse("capture", "--json and - cannot be combined");
	return false;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns 0, or an errno of the file. */
static int write_all(struct capture_session *s, const struct capture_options *o, FILE *f,
		     struct capture_counts *counts)
{
	double end = now() + o->seconds;
	bool more;
	int error;

	for (;;) {
		error = capture_file_take(f, s, o->count, counts, &more);
		if (error != 0 || (o->count > 0 && counts->frames == o->count))
			return error;
		if (!more && s->until != 0)
			return 0;
		if (!more && fflush(f) != 0)
			return errno;
		if (!more)
			capture_session_wait(s, LIMIT_CAPTURE_LOOK_MS);
		if (s->gone || capture_interrupted || (o->seconds > 0 && now() >= end))
			capture_session_end(s);
	}
}

static void report(const struct capture_options *o, const struct capture_counts *r)
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
	struct capture_counts counts = { 0 };
	int error = capture_file_begin(f, s, "uroce capture", o->snap), ended;

	if (error != 0)
		return error;
	error = write_all(s, o, f, &counts);
	ended = capture_file_end(f, s, &counts);
	if (error == 0)
		error = ended;
	if (error == 0)
		report(o, &counts);
	return error;
}

/* Otherwise a reader that does not read would make `--seconds` last for ever. */
static FILE *open_file(const struct capture_options *o)
{
	FILE *f = capture_file_open(o->file), *bounded;

	if (f == NULL || o->seconds == 0)
		return f;
	bounded = capture_file_bound(f, o->seconds);
	if (bounded == NULL && f != stdout)
		fclose(f);
	return bounded;
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
	f = open_file(&o);
	error = f == NULL ? errno : capture(&s, &o, f);
	if (f != NULL && f != stdout && fclose(f) != 0 && error == 0)
		error = errno;
	if (s.gone)
		fprintf(stderr, "uroce capture: the engine has ended\n");
	capture_session_close(&s);
	if (error == 0)
		return output_status("uroce capture");
	fprintf(stderr, "uroce capture: %s: %s\n", o.file,
		error == ETIMEDOUT ? "its reader does not read" : strerror(error));
	return EXIT_FAILED;
}
