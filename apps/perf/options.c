/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "options.h"
#include "perf.h"

#define LARGEST_MESSAGE (64u << 20)

const char *const operation_name[PERF_OPERATIONS] = { "write", "read", "send", "atomic" };

static const char not_operations[] = "must be a list of write, read, send, atomic";

static const char help[] =
	"usage: uroce perf [OPTIONS]\n"
	"\n"
	"Runs two engines in this process with their ports joined by net_ring. ICRCs are computed\n"
	"and checked.\n"
	"\n"
	"  --operation LIST   write,read,send,atomic (default: write,read,send,atomic)\n"
	"  --size LIST        message sizes in octets (default: 8,4096,65536; atomics have 8)\n"
	"  --qps LIST         numbers of queue pairs that work at once (default 1)\n"
	"  --depth N          outstanding requests on each queue pair (default 128)\n"
	"  --post N           requests posted by one call, the last one signalled (default 16)\n"
	"  --mtu N            path MTU: 256, 512, 1024, 2048, 4096 (default 4096)\n"
	"  --placement P      one: everything on one core (default); two: one engine on each core;\n"
	"                     apart: both engines on one core, the program on the other\n"
	"  --latency          measure half round trips of WRITE instead of rates\n"
	"  --seconds S        duration of each measurement (default 1)\n"
	"  --no-limits        do not measure this machine's limits\n"
	"  --memory MB        EAL memory without hugepages (default 1024)\n"
	"  --json             print JSON\n";

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
	static const char *const names[] = { "one", "two", "apart" };
	struct perf_options *o = into;

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(value, names[i]) == 0) {
			o->placement = i;
			return NULL;
		}
	return "must be one of one, two, apart";
}

bool perf_options_parse(struct perf_options *o, int argc, char **argv, int *status)
{
	bool no_limits = false;
	const struct option_row rows[] = {
		{ "operation", .read = read_operations, .into = o },
		{ "size", .read = read_sizes, .into = o },
		{ "qps", .read = read_qps, .into = o },
		{ "depth", .u32 = &o->depth, .least = 1, .most = 4096 },
		{ "post", .u32 = &o->post, .least = 1, .most = 4096 },
		{ "mtu", .read = read_mtu, .into = o },
		{ "placement", .read = read_placement, .into = o },
		{ "latency", .flag = &o->latency },
		{ "seconds", .real = &o->seconds, .from = 0.01, .to = 3600 },
		{ "no-limits", .flag = &no_limits },
		{ "memory", .u32 = &o->memory, .least = 64, .most = 1u << 20 },
		{ "json", .flag = &o->json },
		{ NULL }
	};

	*o = (struct perf_options){
		.operation = { true, true, true, true },
		.sizes = 3,
		.size = { 8, 4096, 65536 },
		.qps_count = 1,
		.qps_of = { 1 },
		.depth = 128,
		.post = 16,
		.mtu = 4096,
		.seconds = 1,
		.memory = 1024,
	};
	if (!options_read("perf", help, rows, argc, argv, NULL, status))
		return false;
	o->limits = !no_limits;
	o->post = MIN_OF(o->post, o->depth);
	for (uint32_t i = 0; i < o->qps_count; i++)
		o->qps = MAX_OF(o->qps, o->qps_of[i]);
	return true;
}
