/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce stat: describes an engine and prints its counters. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/reason.h"
#include "commands.h"
#include "json.h"
#include "locate.h"
#include "options.h"
#include "stat_cm.h"

static const char usage[] =
	"usage: uroce stat [--socket PATH] [--all | --cm] [--json]\n"
	"\n"
	"Describes an engine and prints its counters since it started. Frames and requests that were\n"
	"dropped or refused or that failed are counted by reason. A reason's number is also the\n"
	"vendor_err of a work completion.\n"
	"\n"
	"  --socket PATH  use the engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  --all          print reasons that never occurred, too\n"
	"  --cm           print the ids of rdma_cm instead: listeners and connections\n"
	"  --json         print JSON, always with all reasons\n";

struct stat_options {
	const char *socket;
	bool all;
	bool cm;
	bool json;
};

/* One counter; `name` is its key in the JSON output. */
struct counter {
	const char *name;
	const char *what;
	size_t offset; /* of a uint64_t in struct reply_statistics */
};

#define COUNTER(field, what)                                           \
	{                                                              \
#field, what, offsetof(struct reply_statistics, field) \
	}

static const struct counter counters[] = {
	COUNTER(rx_packets, "packets received"),
	COUNTER(rx_octets, "octets received"),
	COUNTER(tx_packets, "packets sent"),
	COUNTER(tx_octets, "octets sent"),
	COUNTER(retransmitted, "packets retransmitted"),
	COUNTER(timeouts, "acknowledgement timeouts"),
	COUNTER(rnr_naks, "receiver-not-ready NAKs"),
	COUNTER(polls, "polls of the lcores"),
	COUNTER(idle_polls, "polls that found nothing to do"),
	COUNTER(kernel_given, "frames given to the kernel's interface"),
	COUNTER(kernel_taken, "frames that the kernel sent through the port"),
};

static uint64_t counter_value(const struct reply_statistics *s, const struct counter *c)
{
	uint64_t v;

	memcpy(&v, (const char *)s + c->offset, sizeof(v));
	return v;
}

/* Objects of all kinds, of all programs. */
static uint64_t objects_of(const struct reply_statistics *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < STATISTICS_KINDS; i++)
		n += s->objects[i];
	return n;
}

static void print_text(const struct reply_device *d, const struct reply_statistics *s, bool all)
{
	char text[512];

	engine_describe(d, text, sizeof(text));
	printf("%s\n", text);
	printf("%u programs, %u queue pairs, %u completion queues, %u memory regions\n\n",
	       s->clients, s->qps, s->cqs, s->mrs);
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		printf("%16" PRIu64 "  %s\n", counter_value(s, &counters[i]), counters[i].what);
	putchar('\n');
	for (unsigned int r = 1; r < REASON_COUNT; r++)
		if (all || s->by_reason[r] != 0)
			printf("%16" PRIu64 "  %-22s %3u  %s\n", s->by_reason[r],
			       reason_name((enum reason)r), r, reason_sentence((enum reason)r));
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
		if (gid_text(&d->gid[i], text, sizeof(text))[0] != '\0')
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
	json_integer(&j, "objects", objects_of(s));
	json_integer(&j, "connections", s->connections);
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		json_integer(&j, counters[i].name, counter_value(s, &counters[i]));
	json_open(&j, "by_reason", '{');
	for (unsigned int r = 1; r < REASON_COUNT; r++)
		json_integer(&j, reason_name((enum reason)r), s->by_reason[r]);
	json_close(&j, '}');
	json_close(&j, '}');
}

static bool parse(int argc, char **argv, struct stat_options *o, int *status)
{
	const struct option_row rows[] = { { "socket", .text = &o->socket },
					   { "all", .flag = &o->all },
					   { "cm", .flag = &o->cm },
					   { "json", .flag = &o->json },
					   { NULL } };

	if (!options_read("stat", usage, rows, argc, argv, NULL, status))
		return false;
	if (!o->all || !o->cm)
		return true;
	*status = options_refuse("stat", "--all and --cm cannot be combined");
	return false;
}

static int stat_counters(int fd, const struct reply_device *device, const struct stat_options *o,
			 char *why, size_t why_size)
{
	static struct reply_statistics statistics;
	int error = engine_ask(fd, COMMAND_STATISTICS, &statistics.h, sizeof(statistics), why,
			       why_size);

	if (error != 0)
		return error;
	if (o->json)
		print_json(device, &statistics);
	else
		print_text(device, &statistics, o->all);
	return 0;
}

int command_stat(int argc, char **argv)
{
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
	else if (o.cm)
		error = stat_cm(fd, o.json, why, sizeof(why));
	else
		error = stat_counters(fd, &device, &o, why, sizeof(why));
	if (fd >= 0)
		close(fd);
	if (error == 0)
		return EXIT_DONE;
	fprintf(stderr, "uroce stat: %s: %s\n", where.path, why[0] != '\0' ? why : strerror(error));
	return EXIT_FAILED;
}
