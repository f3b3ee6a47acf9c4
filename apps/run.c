/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce run: execve()s an unmodified program with our libraries before the system's, and with
 * UROCE_SOCKET naming the engine. Pid, exit status and signals are the program's. Nothing of uroce
 * remains but an idle connection that keeps the user's own engine alive. If no engine answers, one
 * is started for this user first (spawn.c); other shells' `uroce run` then find it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "commands.h"
#include "files.h"
#include "json.h"
#include "locate.h"
#include "options.h"
#include "program.h"
#include "spawn.h"

#define KEPT_FROM 200 /* keep_engine leaves lower descriptors to the program */

static const char usage[] =
	"usage: uroce run [--socket PATH] [--files HOW] [--quiet] [--json] -- PROGRAM [ARGS...]\n"
	"\n"
	"Runs an unmodified verbs program on a uroce engine. Its device is uroce0.\n"
	"\n"
	"  --socket PATH  use the engine at PATH; default: $UROCE_SOCKET, the system's engine\n"
	"                 (/run/uroce/uroced.sock), the user's own ($XDG_RUNTIME_DIR/uroce or\n"
	"                 /tmp/uroce-UID); if none answers, an engine for this host is started\n"
	"                 there, which exits 10 s after its last program\n"
	"  --files HOW    how the program sees the device in /sys/class/infiniband and\n"
	"                 /dev/infiniband:\n"
	"                 auto     mounts as root, else preload (the default)\n"
	"                 mounts   its own mount namespace (unless root in a user namespace)\n"
	"                 preload  a library that redirects calls of libc\n"
	"                 none     not at all (also --no-files)\n"
	"  --quiet        do not print on stderr which engine is used, unless this user may not use\n"
	"                 the system's\n"
	"  --json         print it as JSON\n"
	"\n"
	"The exit status is the program's; 126 or 127 if it cannot be run, 1 if no engine serves it.\n";

struct run_options {
	const char *socket;
	enum files_way files;
	bool files_given;
	bool quiet;
	bool json;
};

static const char *read_files(void *into, const char *value)
{
	struct run_options *o = into;

	o->files_given = true;
	return files_way_of(value, &o->files) == 0 ? NULL
						   : "must be one of auto, mounts, preload, none";
}

/* The library takes what it does not know for the default, and has nobody to tell. */
static const char *wrong_variable(void)
{
	static const struct {
		const char *name, *values, *must;
	} rows[] = { { "UROCE_PROMOTE", " on off auto ", "on, off or auto" },
		     { "UROCE_LOG", " info debug ", "info or debug" } };
	static char text[128];
	char value[48];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *given = getenv(rows[i].name);

		if (given == NULL || given[0] == '\0')
			continue;
		snprintf(value, sizeof(value), " %.40s ", given);
		if (strchr(given, ' ') == NULL && strstr(rows[i].values, value) != NULL)
			continue;
		snprintf(text, sizeof(text), "%s=%.40s: must be %s", rows[i].name, given,
			 rows[i].must);
		return text;
	}
	return NULL;
}

/* *program is set to the index of the program's name. */
static bool parse(int argc, char **argv, struct run_options *o, int *program, int *status)
{
	const char *wrong;
	bool no_files = false;
	const struct option_row rows[] = {
		{ "socket", .text = &o->socket },  { "files", .read = read_files, .into = o },
		{ "no-files", .flag = &no_files }, { "quiet", .flag = &o->quiet },
		{ "json", .flag = &o->json },	   { NULL }
	};

	if (!options_read("run", usage, rows, argc, argv, program, status))
		return false;
	if (no_files && o->files_given && o->files != FILES_NONE)
		wrong = "--files and --no-files cannot be combined";
	else if (*program == argc)
		wrong = "no program given: uroce run -- PROGRAM [ARGS...]";
	else
		wrong = wrong_variable();
	if (wrong != NULL)
		*status = options_refuse("run", wrong);
	if (no_files)
		o->files = FILES_NONE;
	return wrong == NULL;
}

/* A chosen engine must exist; the user's own is started if needed. */
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
		     const struct reply_device *device, bool started, enum files_way files)
{
	char text[512];

	/* a user who expects the system's engine would look for its peers in vain */
	if (where->refused && !o->json)
		fprintf(stderr, "uroce: you may not use " SYSTEM_SOCKET ": using %s instead\n",
			where->path);
	if (o->quiet)
		return;
	if (o->json) {
		struct json j = { .out = stderr };

		json_open(&j, NULL, '{');
		json_string(&j, "device", device->name);
		json_string(&j, "socket", where->path);
		json_bool(&j, "started", started);
		json_bool(&j, "refused", where->refused);
		json_string(&j, "files", files_way_name(files));
		json_close(&j, '}');
		return;
	}
	engine_describe(device, text, sizeof(text));
	fprintf(stderr, "uroce: %s at %s%s\n", text, where->path, started ? " (just started)" : "");
}

/*
 * The user's own engine exits some seconds after the last program has gone, and this program may
 * take longer than that to open the device. So it inherits a connection on which nothing is sent,
 * which keeps the engine for it and its children. Its number is above those that shells use.
 */
static void keep_engine(const struct engine_place *where)
{
	int fd = where->own ? engine_connect(where->path) : -1;

	if (fd < 0)
		return; /* the engine is exiting: the program will report what it finds */
	if (fcntl(fd, F_DUPFD, KEPT_FROM) >= 0)
		close(fd);
	else
		fcntl(fd, F_SETFD, 0); /* the descriptor limit is low: keep the number */
}

/* The folder of rdma-core's librspreload.so, so that LD_PRELOAD finds it by name. NULL: none. */
static const char *rsocket_folder(void)
{
	static const char *const folder[] = {
#ifdef __x86_64__
		"/usr/lib/x86_64-linux-gnu/rsocket",
#endif
#ifdef __aarch64__
		"/usr/lib/aarch64-linux-gnu/rsocket",
#endif
		"/usr/lib64/rsocket",
		"/usr/lib/rsocket",
	};

	for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]); i++)
		if (access(folder[i], R_OK | X_OK) == 0)
			return folder[i];
	return NULL;
}

static int set_library_path(const char *first)
{
	const char *rest = getenv("LD_LIBRARY_PATH"), *last = rsocket_folder();
	bool has_rest = rest != NULL && rest[0] != '\0', has_last = last != NULL;
	char *joined;
	int status;

	if (asprintf(&joined, "%s%s%s%s%s", first, has_rest ? ":" : "", has_rest ? rest : "",
		     has_last ? ":" : "", has_last ? last : "") < 0)
		return -1;
	status = setenv("LD_LIBRARY_PATH", joined, 1);
	free(joined);
	return status;
}

/*
 * Shows the program its device. If the way that the user chose is not available this fails, rather
 * than taking another way.
 */
static int show_files(const struct run_options *o, const struct engine_place *where,
		      const struct reply_device *device, enum files_way *way)
{
	char why[PATH_MAX + 128];

	*way = files_show(o->files, where, device, why, sizeof(why));
	if (*way != FILES_NONE || o->files == FILES_NONE)
		return 0;
	if (o->files != FILES_AUTO) {
		fprintf(stderr, "uroce run: --files %s: %s\n", files_way_name(o->files), why);
		return -1;
	}
	if (!o->quiet)
		fprintf(stderr, "uroce run: no device in /sys/class/infiniband: %s\n", why);
	return 0;
}

int command_run(int argc, char **argv)
{
	struct run_options o = { 0 };
	char program[PATH_MAX], libraries[3 * PATH_MAX], why[PATH_MAX + 128];
	struct engine_place where;
	struct reply_device device;
	enum files_way files;
	bool started;
	int status, word;

	if (!parse(argc, argv, &o, &word, &status))
		return status;
	status = program_find(argv[word], program, why, sizeof(why));
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
	if (setenv("UROCE_SOCKET", where.path, 1) != 0 || set_library_path(libraries) != 0) {
		perror("uroce run");
		return EXIT_FAILED;
	}
	if (show_files(&o, &where, &device, &files) != 0)
		return EXIT_FAILED;
	announce(&o, &where, &device, started, files);
	keep_engine(&where);
	execv(program, argv + word);
	fprintf(stderr, "uroce run: %s: %s\n", program, strerror(errno));
	return PROGRAM_NOT_RUNNABLE;
}
