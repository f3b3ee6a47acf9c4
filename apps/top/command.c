/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce top: which programs, peers and queue pairs of an engine send and receive most. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/commands.h"
#include "base/bits.h"
#include "lists.h"
#include "locate.h"
#include "look.h"
#include "options.h"
#include "output.h"
#include "print.h"
#include "ranks.h"
#include "screen.h"

#define PROGRAMS_AT_FIRST 64u

static const char usage[] =
	"usage: uroce top [--socket PATH] [--interval SECONDS] [--once] [--lines N] [--json]\n"
	"\n"
	"Shows the programs, peers and queue pairs of an engine by how many packets they send and\n"
	"receive. On a terminal each page replaces the last one, until q; elsewhere they follow\n"
	"each other.\n"
	"\n"
	"  --socket PATH       use the engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  --interval SECONDS  time between pages, 0.1 .. 3600 (default 2)\n"
	"  --once              print one page, after one interval\n"
	"  --lines N           at most N lines of each table (default: what fits the terminal; all)\n"
	"  --json              print JSON, an object for each page\n"
	"\n"
	"You see your own programs; root and the engine's user see all. Rates count new packets: those\n"
	"that a queue pair has sent, and the requests that it has received.\n";

struct top_options {
	const char *socket;
	double interval;
	uint32_t lines; /* 0: all, or what fits */
	bool once, json;
};

struct top {
	const struct top_options *o;
	int fd; /* of the engine */
	bool page; /* on a terminal */
	bool failed; /* no memory in a callback */
	struct look now, before;
	struct listed_program *program;
	uint32_t programs, room;
	struct summary_of_top summary;
	struct timespec at; /* of summary.before */
	char why[256];
};

/* ---- asking ---- */

static void take_qp(void *arg, const void *entry)
{
	struct top *t = arg;

	if (!look_add(&t->now, entry))
		t->failed = true;
}

static void take_program(void *arg, const void *entry)
{
	struct top *t = arg;
	uint32_t room = MAX_OF(2 * t->room, PROGRAMS_AT_FIRST);
	struct listed_program *larger;

	if (t->programs == t->room) {
		larger = reallocarray(t->program, room, sizeof(*larger));
		if (larger == NULL) {
			t->failed = true;
			return;
		}
		t->program = larger;
		t->room = room;
	}
	t->program[t->programs++] = *(const struct listed_program *)entry;
}

/* 0 or an errno. */
static int look_at_qps(struct top *t)
{
	struct look swap = t->before;
	int error;

	t->before = t->now;
	t->now = swap;
	look_clear(&t->now);
	error = list_walk(t->fd, LIST_QPS, take_qp, t, t->why, sizeof(t->why));
	if (error == 0 && t->failed)
		error = ENOMEM;
	if (error == 0)
		look_follow(&t->now, &t->before);
	return error;
}

static int look_at_the_rest(struct top *t)
{
	int error;

	t->programs = 0;
	error = list_walk(t->fd, LIST_PROGRAMS, take_program, t, t->why, sizeof(t->why));
	if (error == 0 && t->failed)
		error = ENOMEM;
	if (error != 0)
		return error;
	return engine_ask(t->fd, COMMAND_STATISTICS, &t->summary.now.h, sizeof(t->summary.now),
			  t->why, sizeof(t->why));
}

/* ---- a page ---- */

static double seconds_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) + (double)(now.tv_nsec - from->tv_nsec) / 1e9;
}

/* Counts from here on are on the next page. */
static void begin_window(struct top *t)
{
	look_restart(&t->now);
	t->summary.before = t->summary.now;
	clock_gettime(CLOCK_MONOTONIC, &t->at);
}

static int print(struct top *t)
{
	const struct top_options *o = t->o;
	struct ranks r;

	if (!ranks_make(&r, &t->now, t->summary.seconds, t->program, t->programs))
		return ENOMEM;
	screen_begin();
	if (o->json)
		top_print_json(stdout, &t->summary, &r, o->lines);
	else if (t->page && o->lines == 0)
		top_print_page(stdout, &t->summary, &r, screen_lines());
	else
		top_print(stdout, &t->summary, &r, o->lines);
	if (!t->page && !o->once && !o->json)
		putchar('\n');
	ranks_free(&r);
	return output_error();
}

/* Looks at the queue pairs often, as their numbers wrap. *ended: the user has had enough. */
static int wait_and_look(struct top *t, bool *ended)
{
	double left;
	int error = 0;

	while (error == 0 && (left = t->o->interval - seconds_since(&t->at)) > 0) {
		*ended = !screen_wait(MIN_OF(left, LOOK_EVERY));
		if (*ended)
			return 0;
		error = look_at_qps(t);
	}
	t->summary.seconds = seconds_since(&t->at);
	return error != 0 ? error : look_at_the_rest(t);
}

static int go_on(struct top *t)
{
	bool ended = false;
	int error = look_at_qps(t);

	if (error == 0)
		error = look_at_the_rest(t);
	if (error == 0 && t->page)
		error = print(t); /* without rates */
	while (error == 0) {
		begin_window(t);
		error = wait_and_look(t, &ended);
		if (error == 0 && !ended)
			error = print(t);
		if (ended || t->o->once)
			break;
	}
	return error;
}

/* ---- the command ---- */

static bool parse(int argc, char **argv, struct top_options *o, int *status)
{
	const struct option_row rows[] = {
		{ "socket", .text = &o->socket },
		{ "interval", .real = &o->interval, .from = 0.1, .to = 3600 },
		{ "once", .flag = &o->once },
		{ "lines", .u32 = &o->lines, .least = 1, .most = 100000 },
		{ "json", .flag = &o->json },
		{ NULL },
	};

	return options_read("top", usage, rows, argc, argv, NULL, status);
}

int command_top(int argc, char **argv)
{
	static struct top t;
	struct top_options o = { .interval = 2 };
	struct engine_place where;
	struct reply_device device;
	int error, status;

	if (!parse(argc, argv, &o, &status))
		return status;
	if (engine_locate(o.socket, &where, &device, t.why, sizeof(t.why)) != 0) {
		fprintf(stderr, "uroce top: %s\n", t.why);
		return EXIT_FAILED;
	}
	t.o = &o;
	t.summary.device = &device;
	t.page = isatty(STDOUT_FILENO) && !o.once && !o.json;
	t.fd = engine_connect(where.path);
	error = t.fd < 0 ? -t.fd : 0;
	if (error == 0) {
		screen_open(t.page);
		error = go_on(&t);
		screen_close();
		close(t.fd);
	}
	look_free(&t.now);
	look_free(&t.before);
	free(t.program);
	if (error == 0 || output_error() != 0)
		return output_status("uroce top");
	fprintf(stderr, "uroce top: %s: %s\n", where.path,
		t.why[0] != '\0' ? t.why : strerror(error));
	return EXIT_FAILED;
}
