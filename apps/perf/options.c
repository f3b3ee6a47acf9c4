/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "channel.h"
#include "options.h"
#include "perf.h"

#define LARGEST_MESSAGE PERF_OCTETS

const char *const operation_name[PERF_OPERATIONS] = { "write", "read", "send", "atomic" };
const char *const placement_name[] = { "one", "two", "apart" };

static const char not_operations[] = "must be a list of write, read, send, atomic";

static const char help[] =
	"usage: uroce perf [OPTIONS]\n"
	"       uroce perf --report DIR [--quick] [OPTIONS]\n"
	"       uroce perf --server [--tcp-port N] [--socket PATH] [--once]\n"
	"       uroce perf --peer HOST [--tcp-port N] [--socket PATH] [--link GBIT/S] [OPTIONS]\n"
	"\n"
	"Runs two engines in this process with their ports joined by net_ring. ICRCs are computed\n"
	"and checked. With --peer: measures from this machine's engine to the engine of a\n"
	"`uroce perf --server` on another machine, and compares with the wire and the kernel's TCP.\n"
	"\n"
	"  --operation LIST   write,read,send,atomic (default: write,read,send,atomic)\n"
	"  --size LIST        message sizes in octets (default: 8,4096,65536; atomics have 8)\n"
	"  --qps LIST         numbers of queue pairs that work at once (default 1)\n"
	"  --depth N          outstanding requests on each queue pair, a multiple of --post\n"
	"                     (default 128); of READs and atomics at most the device's limit\n"
	"  --post N           requests posted by one call, the last one signalled (default: the\n"
	"                     largest number up to 16 that divides the depth)\n"
	"  --mtu N            path MTU: 256, 512, 1024, 2048, 4096 (default 4096)\n"
	"  --placement P      one: everything on one core (default); two: one engine on each core;\n"
	"                     apart: both engines on one core, the program on the other\n"
	"  --latency          measure half round trips of WRITE instead of rates, on one queue pair\n"
	"                     (not --operation, --qps, --depth, --post and --cycles)\n"
	"  --seconds S        duration of each measurement (default 1), and until every queue pair has\n"
	"                     completed something since it began\n"
	"  --cycles           also measure the cycles of a packet in each stage of both engines\n"
	"  --loss LIST        per cent of the frames that are lost in each direction, 0 .. 100, one\n"
	"                     after another; net_impair stands before both ports then\n"
	"  --reorder LIST     ... and per cent that up to 32 others overtake, 0 .. 100, one after\n"
	"                     another at each loss\n"
	"  --no-limits        do not measure this machine's limits\n"
	"  --memory MB        EAL memory without hugepages (default 128)\n"
	"  --json             print JSON\n"
	"\n"
	"a page of figures (not --operation, --size, --qps, --latency, --cycles, --loss, --reorder,\n"
	"--no-limits, --json):\n"
	"  --report DIR       write DIR/index.html, and its numbers to DIR/figures.json\n"
	"  --quick            fewer points, and 0.1 seconds for each\n"
	"\n"
	"between two machines (not --placement, --memory, --cycles, --loss and --reorder):\n"
	"  --server           serve clients of other machines, one after another\n"
	"  --once             ... only one of them\n"
	"  --peer HOST        measure to the server on that host\n"
	"  --tcp-port N       TCP port of the server (default 4791; 0 with --server: a free one)\n"
	"  --socket PATH      the engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  --link GBIT/S      how fast the wire is, if the port does not say, 0.001 .. 10000\n";

static const char *read_operations(void *into, const char *value)
{
	struct perf_options *o = into;
	char list[64], *rest = list, *word;

	if (strlen(value) >= sizeof(list))
		return not_operations;
	memset(o->operation, 0, sizeof(o->operation));
	for (strcpy(list, value); (word = strsep(&rest, ",")) != NULL;) {
		uint32_t i = 0;

		while (i < PERF_OPERATIONS && strcmp(word, operation_name[i]) != 0)
			i++;
		if (i == PERF_OPERATIONS)
			return not_operations;
		o->operation[i] = true;
	}
	return NULL;
}

/* Numbers in 1 .. most, with commas between them. False: it is something else. */
static bool read_numbers(const char *value, uint32_t most, uint32_t *to, uint32_t *count)
{
	const char *word = value;
	char *end;

	for (*count = 0;; word = end + 1) {
		unsigned long v = strtoul(word, &end, 10);

		if (*word < '0' || *word > '9' || v < 1 || v > most ||
		    (*end != ',' && *end != '\0') || *count == PERF_SIZES)
			return false;
		to[(*count)++] = (uint32_t)v;
		if (*end == '\0')
			return true;
	}
}

static const char *read_sizes(void *into, const char *value)
{
	struct perf_options *o = into;

	if (read_numbers(value, LARGEST_MESSAGE, o->size, &o->sizes))
		return NULL;
	return "must be a list of at most 16 sizes in 1 .. 67108864";
}

static const char *read_parts(const char *word, double *part, uint32_t *parts)
{
	static const char wrong[] = "must be a list of at most 16 numbers in 0 .. 100";
	char *end;

	for (*parts = 0;; word = end + 1) {
		double v = strtod(word, &end);

		if (*word < '0' || *word > '9' || !(v <= 100) || (*end != ',' && *end != '\0') ||
		    *parts == PERF_SIZES)
			return wrong;
		part[(*parts)++] = v;
		if (*end == '\0')
			return NULL;
	}
}

static const char *read_losses(void *into, const char *value)
{
	struct perf_options *o = into;

	return read_parts(value, o->loss, &o->losses);
}

static const char *read_reorders(void *into, const char *value)
{
	struct perf_options *o = into;

	return read_parts(value, o->reorder, &o->reorders);
}

static const char *read_qps(void *into, const char *value)
{
	struct perf_options *o = into;

	if (read_numbers(value, PERF_QPS, o->qps_of, &o->qps_count))
		return NULL;
	return "must be a list of at most 16 numbers in 1 .. 16384";
}

static const char *read_mtu(void *into, const char *value)
{
	static const char *const mtus[] = { "256", "512", "1024", "2048", "4096" };
	struct perf_options *o = into;

	for (uint32_t i = 0; i < ARRAY_SIZE(mtus); i++)
		if (strcmp(value, mtus[i]) == 0) {
			o->mtu = 256u << i;
			return NULL;
		}
	return "must be one of 256, 512, 1024, 2048, 4096";
}

static const char *read_placement(void *into, const char *value)
{
	struct perf_options *o = into;

	for (uint32_t i = 0; i < ARRAY_SIZE(placement_name); i++)
		if (strcmp(value, placement_name[i]) == 0) {
			o->placement = i;
			return NULL;
		}
	return "must be one of one, two, apart";
}

#define ROWS 23 /* the end counted */

static void add_rows(struct option_row *to, const struct option_row *rows, size_t n)
{
	while (to->name != NULL)
		to++;
	memcpy(to, rows, n * sizeof(*rows));
}

/* Both ends in this process, or one of them: others are refused what is not for them. */
static void list_rows(struct perf_options *o, bool *no_limits, struct option_row row[ROWS])
{
	const struct option_row server[] = {
		{ "server", .flag = &o->server },
		{ "once", .flag = &o->once },
		{ "tcp-port", .u16 = &o->tcp_port, .least = 0, .most = 65535 },
		{ "socket", .text = &o->socket },
	};
	const struct option_row client[] = {
		{ "peer", .text = &o->peer },
		{ "tcp-port", .u16 = &o->tcp_port, .least = 1, .most = 65535 },
		{ "socket", .text = &o->socket },
		{ "link", .real = &o->link, .from = 0.001, .to = 10000 },
	};
	const struct option_row here[] = {
		{ "placement", .read = read_placement, .into = o },
		{ "memory", .u32 = &o->memory, .least = 64, .most = 1u << 20 },
	};
	const struct option_row report[] = {
		{ "report", .text = &o->report },
		{ "quick", .flag = &o->quick },
	};
	const struct option_row all[] = {
		{ "depth", .u32 = &o->depth, .least = 1, .most = PERF_DEPTH },
		{ "post", .u32 = &o->post, .least = 1, .most = PERF_DEPTH },
		{ "mtu", .read = read_mtu, .into = o },
		{ "seconds", .real = &o->seconds, .from = 0.01, .to = 3600 },
	};
	const struct option_row loads[] = {
		{ "operation", .read = read_operations, .into = o },
		{ "size", .read = read_sizes, .into = o },
		{ "qps", .read = read_qps, .into = o },
		{ "latency", .flag = &o->latency },
		{ "no-limits", .flag = no_limits },
		{ "json", .flag = &o->json },
	};

	const struct option_row rings[] = {
		{ "cycles", .flag = &o->cycles },
		{ "loss", .read = read_losses, .into = o },
		{ "reorder", .read = read_reorders, .into = o },
	};

	memset(row, 0, ROWS * sizeof(*row));
	if (o->server) {
		add_rows(row, server, ARRAY_SIZE(server));
		return;
	}
	add_rows(row, all, ARRAY_SIZE(all));
	if (o->report != NULL)
		add_rows(row, report, ARRAY_SIZE(report));
	else
		add_rows(row, loads, ARRAY_SIZE(loads));
	if (o->peer != NULL)
		add_rows(row, client, ARRAY_SIZE(client));
	else
		add_rows(row, here, ARRAY_SIZE(here));
	if (o->peer == NULL && o->report == NULL)
		add_rows(row, rings, ARRAY_SIZE(rings));
}

/* Which of the four, before the options are read. */
static void choose_end(struct perf_options *o, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		o->server |= strcmp(argv[i], "--server") == 0;
		if (strcmp(argv[i], "--peer") == 0 || strncmp(argv[i], "--peer=", 7) == 0)
			o->peer = "";
		if (strcmp(argv[i], "--report") == 0 || strncmp(argv[i], "--report=", 9) == 0)
			o->report = "";
	}
}

static bool any_operation(const struct perf_options *o)
{
	for (uint32_t i = 0; i < PERF_OPERATIONS; i++)
		if (o->operation[i])
			return true;
	return false;
}

static uint32_t default_post(uint32_t depth)
{
	uint32_t post = 16;

	while (depth % post != 0)
		post--;
	return post;
}

/* With defaults for what was not given. False: the depth is no multiple. */
static bool fit_together(struct perf_options *o)
{
	if (o->depth == 0)
		o->depth = 128;
	if (o->post == 0)
		o->post = default_post(o->depth);
	o->post = MIN_OF(o->post, o->depth);
	return o->depth % o->post == 0;
}

/* Before the defaults of lists are there. True: *status is that of wrong usage. */
static bool refuse_together(struct perf_options *o, int *status)
{
	const char *without_latency = o->cycles		 ? "--cycles"
				      : o->qps_count > 0 ? "--qps"
				      : o->depth > 0	 ? "--depth"
				      : o->post > 0	 ? "--post"
				      : any_operation(o) ? "--operation"
							 : NULL;
	char text[96];

	if (o->latency && without_latency != NULL)
		snprintf(text, sizeof(text), "--latency and %s cannot be combined",
			 without_latency);
	else if (!fit_together(o))
		snprintf(text, sizeof(text), "--depth %u: must be a multiple of --post %u",
			 o->depth, o->post);
	else
		return false;
	*status = options_refuse("perf", text);
	return true;
}

static void default_lists(struct perf_options *o)
{
	if (!any_operation(o))
		memset(o->operation, true, sizeof(o->operation));
	if (o->qps_count == 0)
		o->qps_of[o->qps_count++] = 1;
	for (uint32_t i = 0; i < o->qps_count; i++)
		o->qps = MAX_OF(o->qps, o->qps_of[i]);
}

#define MEMORY_FOR_LIMITS 128 /* MB: an engine of another process has its own */

bool perf_options_parse(struct perf_options *o, int argc, char **argv, int *status)
{
	struct option_row rows[ROWS];
	bool no_limits = false;

	*o = (struct perf_options){
		.sizes = 3,
		.size = { 8, 4096, 65536 },
		.mtu = 4096,
		.seconds = -1,
		.memory = 128,
		.tcp_port = CHANNEL_TCP_PORT,
	};
	choose_end(o, argc, argv);
	if (o->report != NULL && (o->peer != NULL || o->server)) {
		*status = options_refuse(
			"perf",
			"--report runs both ends itself: it cannot be combined with --peer or --server");
		return false;
	}
	list_rows(o, &no_limits, rows);
	if (!options_read("perf", help, rows, argc, argv, NULL, status))
		return false;
	if (refuse_together(o, status))
		return false;
	default_lists(o);
	if (o->reorders > 0 && o->losses == 0)
		o->losses = 1; /* none */
	o->limits = !no_limits;
	if (o->quick && o->seconds < 0)
		o->seconds = 0.1;
	else if (o->seconds < 0)
		o->seconds = 1;
	if (o->peer != NULL)
		o->memory = MEMORY_FOR_LIMITS;
	return true;
}
