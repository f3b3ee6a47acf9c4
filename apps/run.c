/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce run: execve()s an unmodified program with our libraries in front of the system's and
 * UROCE_SOCKET naming the engine. Same pid, same status, same signals: nothing of uroce stays
 * around the program. Where no engine answers it starts one for this user first (spawn.c), which
 * the next shell's `uroce run` then finds.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"
#include "locate.h"
#include "program.h"
#include "spawn.h"

static const char usage[] =
	"usage: uroce run [--socket PATH] [--quiet] [--json] -- PROGRAM [ARGS...]\n"
	"\n"
	"Runs a verbs program, as it is, on a uroce engine (its device is uroce0).\n"
	"\n"
	"  --socket PATH  the engine at PATH; without it: $UROCE_SOCKET, the system's engine\n"
	"                 (/run/uroce/uroced.sock), the user's own ($XDG_RUNTIME_DIR/uroce or\n"
	"                 /tmp/uroce-UID), and where none answers a same-host engine is started\n"
	"                 for you there; it ends 10 s after its last program\n"
	"  --quiet        do not say on stderr which engine is used\n"
	"  --json         say it as JSON\n"
	"\n"
	"The exit status is the program's; 126 or 127 if it cannot be run, 1 if no engine serves it.\n";

struct run_options {
	const char *socket;
	bool quiet;
	bool json;
};

static int parse(int argc, char **argv, struct run_options *o)
{
	static const struct option names[] = { { "socket", required_argument, NULL, 's' },
					       { "quiet", no_argument, NULL, 'q' },
					       { "json", no_argument, NULL, 'j' },
					       { "help", no_argument, NULL, 'h' },
					       { NULL, 0, NULL, 0 } };
	int c;

	/* '+': what follows the first word that is no option belongs to the program */
	while ((c = getopt_long(argc, argv, "+h", names, NULL)) != -1) {
		switch (c) {
		case 's':
			o->socket = optarg;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'j':
			o->json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(EXIT_DONE);
		default:
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return EXIT_DONE;
	fputs("uroce run: which program? uroce run -- PROGRAM [ARGS...]\n", stderr);
	return EXIT_USAGE;
}

/* A chosen engine must be there; the user's own is started. */
static int find_or_start(const struct run_options *o, struct engine_place *where,
			 struct reply_device *device, bool *started)
{
	char why[256];

	*started = false;
	if (engine_locate(o->socket, where, device, why, sizeof(why)) == 0)
		return 0;
	if (where->chosen) {
		fprintf(stderr, "uroce run: %s; start one with: uroced -- --socket %s\n", why,
			where->path);
		return -1;
	}
	if (spawn_engine(where, device, started, why, sizeof(why)) == 0)
		return 0;
	fprintf(stderr, "uroce run: %s\n", why);
	return -1;
}

static void announce(const struct run_options *o, const struct engine_place *where,
		     const struct reply_device *device, bool started)
{
	char text[512];

	if (o->quiet)
		return;
	if (o->json) {
		struct json j = { .out = stderr };

		json_open(&j, NULL, '{');
		json_string(&j, "device", device->name);
		json_string(&j, "socket", where->path);
		json_bool(&j, "started", started);
		json_close(&j, '}');
		return;
	}
	engine_describe(device, text, sizeof(text));
	fprintf(stderr, "uroce: %s at %s%s\n", text, where->path, started ? " (just started)" : "");
}

static int set_library_path(const char *first)
{
	const char *rest = getenv("LD_LIBRARY_PATH");
	char *joined;

	if (rest == NULL || rest[0] == '\0')
		return setenv("LD_LIBRARY_PATH", first, 1);
	if (asprintf(&joined, "%s:%s", first, rest) < 0)
		return -1;
	return setenv("LD_LIBRARY_PATH", joined, 1);
}

int command_run(int argc, char **argv)
{
	struct run_options o = { 0 };
	char program[PATH_MAX], libraries[2 * PATH_MAX], why[PATH_MAX + 128];
	struct engine_place where;
	struct reply_device device;
	bool started;
	int status = parse(argc, argv, &o);

	if (status != EXIT_DONE)
		return status;
	status = program_find(argv[optind], program, why, sizeof(why));
	if (status == 0)
		status = program_check(program, why, sizeof(why));
	if (status != 0) {
		fprintf(stderr, "uroce run: %s\n", why);
		return status;
	}
	if (library_folders(libraries, why, sizeof(why)) != 0) {
		fprintf(stderr, "uroce run: %s\n", why);
		return EXIT_FAILED;
	}
	if (find_or_start(&o, &where, &device, &started) != 0)
		return EXIT_FAILED;
	announce(&o, &where, &device, started);
	if (setenv("UROCE_SOCKET", where.path, 1) != 0 || set_library_path(libraries) != 0) {
		perror("uroce run");
		return EXIT_FAILED;
	}
	execv(program, argv + optind);
	fprintf(stderr, "uroce run: %s: %s\n", program, strerror(errno));
	return PROGRAM_NOT_RUNNABLE;
}
