/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce stat: describes an engine, and prints its counters and lists of its objects. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/reason.h"
#include "commands.h"
#include "counters.h"
#include "json.h"
#include "lists.h"
#include "locate.h"
#include "options.h"
#include "output.h"
#include "stat_cm.h"
#include "stat_cycles.h"

static const char usage[] =
	"usage: uroce stat [--socket PATH] [VIEW] [--watch[=SECONDS]] [--json]\n"
	"\n"
	"Describes an engine and prints its counters since it started. Frames and requests that were\n"
	"dropped or refused or that failed are counted by reason. A reason's number is also the\n"
	"vendor_err of a work completion.\n"
	"\n"
	"  --socket PATH      use the engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  --watch[=SECONDS]  print it again every 2 seconds, counters with their rates\n"
	"  --json             print JSON, always with all reasons\n"
	"\n"
	"The view is one of these:\n"
	"  --all              print reasons that never occurred, too\n"
	"  --hw               print counters by the names that Linux's drivers have for them\n"
	"  --prometheus       print all counters as Prometheus reads them\n"
	"  --cm               print the ids of rdma_cm: listeners and connections\n"
	"  --programs         print programs and how many objects they have\n"
	"  --qps              print queue pairs and their peers\n"
	"  --memory           print memory regions\n"
	"  --neighbours       print destination addresses and their next hops\n"
	"  --paths            print the path to each peer: its round trip and losses\n"
	"  --cycles[=SECONDS] measure the cost of a packet in each stage of an lcore, for SECONDS (1)\n"
	"\n"
	"You see your own queue pairs, regions and programs; root and the engine's user see all. Only\n"
	"these two may measure cycles.\n";

struct stat_options {
	const char *socket;
	bool all, hw, prometheus, cm, programs, qps, memory, neighbours, paths;
	bool json;
	double watch; /* seconds; 0: once */
	double cycles; /* seconds; 0: not wanted */
};

static void print_text(const struct reply_device *d, const struct reply_statistics *s, bool all)
{
	char text[512];

	engine_describe(d, text, sizeof(text));
	printf("%s\npriority of lcores that wake: %.31s\n", text, s->priority);
	counters_print(stdout, s, all);
}

static void json_device(struct json *j, const struct reply_device *d)
{
	char text[64];

	json_string(j, "device", d->name);
	json_string(j, "netdev", d->netdev);
	json_bool(j, "active", d->port_state == 4);
	json_integer(j, "mtu", d->active_mtu <= 5 ? 128u << d->active_mtu : 0);
	json_integer(j, "lcores", d->lcores);
	json_open(j, "addresses", '[');
	for (unsigned int i = 0; i < d->gid_count && i < LIMIT_GIDS; i++)
		if (address_of_gid(&d->gid[i], text, sizeof(text))[0] != '\0')
			json_string(j, NULL, text);
	json_close(j, ']');
}

static void print_json(const struct reply_device *d, const struct reply_statistics *s)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_device(&j, d);
	json_integer(&j, "clients", s->clients);
	json_integer(&j, "qps", s->qps);
	json_integer(&j, "cqs", s->cqs);
	json_integer(&j, "mrs", s->mrs);
	json_integer(&j, "objects", counter_objects(s));
	json_integer(&j, "connections", s->connections);
	json_string(&j, "priority", s->priority);
	for (const struct counter *c = own_counters; c->name != NULL; c++)
		json_integer(&j, c->name, counter_value(s, c));
	for (const struct counter *c = memory_counters; c->name != NULL; c++)
		json_integer(&j, c->name, counter_value(s, c));
	json_open(&j, "hw_counters", '{');
	for (const struct counter *c = linux_counters; c->name != NULL; c++)
		json_integer(&j, c->name, counter_value(s, c));
	json_close(&j, '}');
	json_open(&j, "by_reason", '{');
	for (unsigned int r = 1; r < REASON_COUNT; r++)
		json_integer(&j, reason_name((enum reason)r), s->by_reason[r]);
	json_close(&j, '}');
	json_close(&j, '}');
}

/* One line, as `rdma statistic show` prints it. */
static void print_hw(const struct reply_device *d, const struct reply_statistics *s)
{
	printf("link %.31s/1", d->name);
	for (const struct counter *c = linux_counters; c->name != NULL; c++)
		printf(" %s %" PRIu64, c->name, counter_value(s, c));
	putchar('\n');
}

/* ---- again and again ---- */

static void print_rate(uint64_t now, uint64_t before, double seconds, const char *name,
		       const char *what)
{
	printf("%16" PRIu64 " %14.1f/s  %-22s %s\n", now, (double)(now - before) / seconds, name,
	       what);
}

/* The counts between two looks, a line for each counter that is not 0, or for all. */
static void print_rates(const struct reply_device *d, const struct reply_statistics *now,
			const struct reply_statistics *before, double seconds, bool all)
{
	char text[512];

	engine_describe(d, text, sizeof(text));
	printf("%s\n%u programs, %u queue pairs, %u completion queues, %u memory regions\n\n", text,
	       now->clients, now->qps, now->cqs, now->mrs);
	for (const struct counter *c = own_counters; c->name != NULL; c++)
		if (all || counter_value(now, c) != 0)
			print_rate(counter_value(now, c), counter_value(before, c), seconds,
				   c->name, c->what);
	putchar('\n');
	for (unsigned int r = 1; r < REASON_COUNT; r++)
		if (all || now->by_reason[r] != 0)
			print_rate(now->by_reason[r], before->by_reason[r], seconds,
				   reason_name((enum reason)r), reason_sentence((enum reason)r));
}

struct watch {
	struct reply_statistics now, before;
	struct timespec at; /* of `now` */
	double seconds; /* between both; 0: there was no look before */
};

static int look(int fd, struct watch *w, char *why, size_t why_size)
{
	struct timespec at;
	int error;

	w->before = w->now;
	error = engine_ask(fd, COMMAND_STATISTICS, &w->now.h, sizeof(w->now), why, why_size);
	clock_gettime(CLOCK_MONOTONIC, &at);
	w->seconds = w->at.tv_sec == 0 ? 0
				       : (double)(at.tv_sec - w->at.tv_sec) +
						 (double)(at.tv_nsec - w->at.tv_nsec) / 1e9;
	w->at = at;
	return error;
}

/* ---- the command ---- */

static int counters_show(int fd, const struct reply_device *d, const struct stat_options *o,
			 struct watch *w, char *why, size_t why_size)
{
	int error = look(fd, w, why, why_size);

	if (error != 0)
		return error;
	if (o->prometheus)
		counters_print_prometheus(stdout, d, &w->now);
	else if (o->json)
		print_json(d, &w->now);
	else if (o->hw)
		print_hw(d, &w->now);
	else if (w->seconds > 0)
		print_rates(d, &w->now, &w->before, w->seconds, o->all);
	else
		print_text(d, &w->now, o->all);
	return 0;
}

static int show(int fd, const struct reply_device *d, const struct stat_options *o, struct watch *w,
		char *why, size_t why_size)
{
	const struct {
		bool wanted;
		enum list_of list;
	} lists[] = {
		{ o->programs, LIST_PROGRAMS }, { o->qps, LIST_QPS },
		{ o->memory, LIST_MEMORY },	{ o->neighbours, LIST_NEIGHBOURS },
		{ o->paths, LIST_PATHS },
	};

	if (o->cm)
		return stat_cm(fd, o->json, why, why_size);
	if (o->cycles > 0)
		return stat_cycles(fd, o->cycles, o->json, why, why_size);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (lists[i].wanted)
			return list_print(stdout, fd, lists[i].list, o->json, why, why_size);
	return counters_show(fd, d, o, w, why, why_size);
}

/* On a terminal each look replaces the last one; elsewhere an empty line is between them. */
static int show_again(int fd, const struct reply_device *d, const struct stat_options *o,
		      struct watch *w, char *why, size_t why_size)
{
	double whole = (double)(time_t)o->watch;
	struct timespec pause = { .tv_sec = (time_t)o->watch,
				  .tv_nsec = (long)((o->watch - whole) * 1e9) };
	bool terminal = isatty(STDOUT_FILENO);
	int error;

	for (;;) {
		if (terminal)
			fputs("\033[H\033[2J", stdout);
		error = show(fd, d, o, w, why, why_size);
		if (error != 0)
			return error;
		if (!terminal && !o->json)
			putchar('\n');
		if (output_error() != 0)
			return 0; /* command_stat() says so */
		nanosleep(&pause, NULL);
	}
}

/* The names of the views that were asked for: at most one may be. */
static bool check_views(const struct stat_options *o, int *status)
{
	const struct {
		const char *name;
		bool given;
	} views[] = {
		{ "--all", o->all },
		{ "--hw", o->hw },
		{ "--prometheus", o->prometheus },
		{ "--cm", o->cm },
		{ "--programs", o->programs },
		{ "--qps", o->qps },
		{ "--memory", o->memory },
		{ "--neighbours", o->neighbours },
		{ "--paths", o->paths },
		{ "--cycles", o->cycles > 0 },
		{ "--json", o->json && o->prometheus },
	};
	const char *first = NULL;
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		if (!views[i].given)
			continue;
		if (first != NULL) {
			snprintf(text, sizeof(text), "%s and %s cannot be combined", first,
				 views[i].name);
			*status = options_refuse("stat", text);
			return false;
		}
		first = views[i].name;
	}
	return true;
}

static bool parse(int argc, char **argv, struct stat_options *o, int *status)
{
	const struct option_row rows[] = {
		{ "socket", .text = &o->socket },
		{ "all", .flag = &o->all },
		{ "hw", .flag = &o->hw },
		{ "prometheus", .flag = &o->prometheus },
		{ "cm", .flag = &o->cm },
		{ "programs", .flag = &o->programs },
		{ "qps", .flag = &o->qps },
		{ "memory", .flag = &o->memory },
		{ "neighbours", .flag = &o->neighbours },
		{ "paths", .flag = &o->paths },
		{ "cycles", .real = &o->cycles, .from = 0.01, .to = 3600, .otherwise = "1" },
		{ "watch", .real = &o->watch, .from = 0.1, .to = 3600, .otherwise = "2" },
		{ "json", .flag = &o->json },
		{ NULL },
	};

	return options_read("stat", usage, rows, argc, argv, NULL, status) &&
	       check_views(o, status);
}

int command_stat(int argc, char **argv)
{
	static struct watch watch;
	struct stat_options o = { 0 };
	struct engine_place where;
	struct reply_device device;
	char why[256] = "";
	int fd, error, status;

	if (!parse(argc, argv, &o, &status))
		return status;
	if (engine_locate(o.socket, &where, &device, why, sizeof(why)) != 0) {
		fprintf(stderr, "uroce stat: %s\n", why);
		return EXIT_FAILED;
	}
	fd = engine_connect(where.path);
	if (fd < 0)
		error = -fd;
	else if (o.watch > 0)
		error = show_again(fd, &device, &o, &watch, why, sizeof(why));
	else
		error = show(fd, &device, &o, &watch, why, sizeof(why));
	if (fd >= 0)
		close(fd);
	if (error == 0)
		return output_status("uroce stat");
	fprintf(stderr, "uroce stat: %s: %s\n", where.path, why[0] != '\0' ? why : strerror(error));
	return EXIT_FAILED;
}
