/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "config/limits.h"
#include "perf.h"

const char *const operation_name[PERF_OPERATIONS] = { "write", "read", "send", "atomic" };

static const char help[] =
	"usage: uroce perf [OPTIONS]\n"
	"\n"
	"Two engines in this process, their ports joined by net_ring, ICRC made and checked.\n"
	"\n"
	"  --operation LIST   write,read,send,atomic (default: write,read,send,atomic)\n"
	"  --size LIST        octets of a message (default: 8,4096,65536; atomics have 8)\n"
	"  --qps N            queue pairs (default 1)\n"
	"  --depth N          requests outstanding on each (default 128)\n"
	"  --post N           requests posted by one call, the last signalled (default 16)\n"
	"  --mtu N            path MTU: 256, 512, 1024, 2048, 4096 (default 4096)\n"
	"  --placement P      one: everything on one core (default); two: an engine on each of two;\n"
	"                     apart: both engines on one core, the program on the other\n"
	"  --latency          half round trips of WRITE instead of rates\n"
	"  --seconds S        length of each figure (default 1)\n"
	"  --no-limits        do not measure what the machine could do\n"
	"  --memory MB        EAL memory without hugepages (default 1024)\n"
	"  --json\n";

enum {
	OPT_OPERATION = 1,
	OPT_SIZE,
	OPT_QPS,
	OPT_DEPTH,
	OPT_POST,
	OPT_MTU,
	OPT_PLACEMENT,
	OPT_LATENCY,
	OPT_SECONDS,
	OPT_NO_LIMITS,
	OPT_MEMORY,
	OPT_JSON,
	OPT_HELP
};

static const struct option long_options[] = {
	{ "operation", required_argument, NULL, OPT_OPERATION },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "qps", required_argument, NULL, OPT_QPS },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "post", required_argument, NULL, OPT_POST },
	{ "mtu", required_argument, NULL, OPT_MTU },
	{ "placement", required_argument, NULL, OPT_PLACEMENT },
	{ "latency", no_argument, NULL, OPT_LATENCY },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "no-limits", no_argument, NULL, OPT_NO_LIMITS },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static int refuse(const char *option, const char *value, const char *want)
{
	fprintf(stderr, "uroce perf: --%s %s: %s\n", option, value, want);
	return 1;
}

static bool number(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 0);
	if (errno != 0 || end == text || *end != '\0' || v < min || v > max)
		return false;
	*out = (uint32_t)v;
	return true;
}

static int parse_operations(struct perf_options *o, char *list)
{
	memset(o->operation, 0, sizeof(o->operation));
	for (char *save, *word = strtok_r(list, ",", &save); word != NULL;
	     word = strtok_r(NULL, ",", &save)) {
		bool found = false;

		for (uint32_t i = 0; i < PERF_OPERATIONS; i++)
			if (strcmp(word, operation_name[i]) == 0)
				found = o->operation[i] = true;
		if (!found)
			return refuse("operation", word, "is not one of write, read, send, atomic");
	}
	return 0;
}

static int parse_sizes(struct perf_options *o, char *list)
{
	o->sizes = 0;
	for (char *save, *word = strtok_r(list, ",", &save); word != NULL;
	     word = strtok_r(NULL, ",", &save)) {
		if (o->sizes == PERF_SIZES)
			return refuse("size", word, "is one more than 16 sizes");
		if (!number(word, 1, 64u << 20, &o->size[o->sizes++]))
			return refuse("size", word, "is not in 1 .. 67108864");
	}
	return 0;
}

static int parse_placement(struct perf_options *o, const char *word)
{
	static const char *const names[] = { "one", "two", "apart" };

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(word, names[i]) == 0) {
			o->placement = i;
			return 0;
		}
	return refuse("placement", word, "is not one of one, two, apart");
}

static int parse_seconds(struct perf_options *o, const char *text)
{
	char *end;

	o->seconds = strtod(text, &end);
	if (end == text || *end != '\0' || !(o->seconds >= 0.01 && o->seconds <= 3600))
		return refuse("seconds", text, "is not in 0.01 .. 3600");
	return 0;
}

static int parse_one(struct perf_options *o, int option)
{
	switch (option) {
	case OPT_OPERATION:
		return parse_operations(o, optarg);
	case OPT_SIZE:
		return parse_sizes(o, optarg);
	case OPT_QPS:
		return number(optarg, 1, PERF_QPS, &o->qps)
			       ? 0
			       : refuse("qps", optarg, "is not in 1 .. 16384");
	case OPT_DEPTH:
		return number(optarg, 1, 4096, &o->depth)
			       ? 0
			       : refuse("depth", optarg, "is not in 1 .. 4096");
	case OPT_POST:
		return number(optarg, 1, 4096, &o->post)
			       ? 0
			       : refuse("post", optarg, "is not in 1 .. 4096");
	case OPT_MTU:
		if (number(optarg, 256, 4096, &o->mtu) && (o->mtu & (o->mtu - 1)) == 0)
			return 0;
		return refuse("mtu", optarg, "is not one of 256, 512, 1024, 2048, 4096");
	case OPT_PLACEMENT:
		return parse_placement(o, optarg);
	case OPT_SECONDS:
		return parse_seconds(o, optarg);
	case OPT_MEMORY:
		return number(optarg, 64, 1u << 20, &o->memory)
			       ? 0
			       : refuse("memory", optarg, "is not in 64 .. 1048576");
	case OPT_LATENCY:
		o->latency = true;
		return 0;
	case OPT_NO_LIMITS:
		o->limits = false;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_HELP:
		fputs(help, stdout);
		exit(0);
	default:
		fputs("uroce perf: see uroce perf --help\n", stderr);
		return 1;
	}
}

int perf_options_parse(struct perf_options *o, int argc, char **argv)
{
	int option;

	*o = (struct perf_options){
		.operation = { true, true, true, true },
		.sizes = 3,
		.size = { 8, 4096, 65536 },
		.qps = 1,
		.depth = 128,
		.post = 16,
		.mtu = 4096,
		.seconds = 1,
		.limits = true,
		.memory = 1024,
	};
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (parse_one(o, option) != 0)
			return 1;
	if (optind != argc)
		return refuse("help", argv[optind], "is not an option");
	if (o->post > o->depth)
		o->post = o->depth;
	return 0;
}
