/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce sim --scenario: several hosts, switches and one shared cable, in a table. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/work.h"
#include "json.h"
#include "options.h"
#include "scenario.h"
#include "sim/fabric/scenario.h"

static const char help[] =
	"usage: uroce sim --scenario incast[:N] | bottleneck[:N] | reorder | many[:N] [OPTIONS]\n"
	"\n"
	"Simulates hosts and switches in virtual time and prints the results of their messages.\n"
	"Checks that every message arrives once, in order, unchanged, and in the right place.\n"
	"\n"
	"  incast:N         N hosts (64) send to one through one switch\n"
	"  bottleneck:N     N pairs of hosts (4) share a slower cable between two switches\n"
	"  reorder          one pair of hosts; frames overtake each other\n"
	"  many:N           one pair of hosts with N queue pairs (1024), ports that refuse frames,\n"
	"                   and short receive rings\n"
	"\n"
	"  --peers P        uroce, linux (go-back-N), dcqcn (go-back-N with DCQCN), mixed (every\n"
	"                   second sender as linux). Default: uroce; incast: all of them\n"
	"  --beside KIND    none; uc, ud: one more host sends that, at a tenth of the rate;\n"
	"                   cm: one more host makes and ends connections by rdma_cm's messages\n"
	"  --operation O    write, send, read (write); peers other than uroce only write\n"
	"  --size OCTETS    octets of a message\n"
	"  --depth N        messages under way of each queue pair\n"
	"  --qps N          queue pairs of each sender\n"
	"  --mtu N          path MTU: 256, 512, 1024, 2048, 4096 (4096)\n"
	"  --rate BITS      bits a second of the cable that all share\n"
	"  --buffer OCTETS  buffer of each port of a switch\n"
	"  --ecn OCTETS     queued octets above which frames are marked; 0: never\n"
	"  --shared OCTETS  buffer that all ports of a switch share; 0: no limit\n"
	"  --delay TIME     of each cable; --trunk-delay: of the one between two switches\n"
	"  --loss P         probability that a frame is lost, each way\n"
	"  --reorder P      probability that others overtake it, up to --places N (32)\n"
	"  --ring N         frames of a receive ring\n"
	"  --packet-time T  processor time of a host for one packet\n"
	"  --receiver-time T  the same, of hosts that only receive\n"
	"  --forgetful      receivers have no room for packets that arrive early\n"
	"  --refuse P       probability that a port refuses frames, for --refuse-for TIME\n"
	"  --timeout N      of acknowledgements: 4.096 us * 2^N (14)\n"
	"  --time TIME      how long messages are posted; the first tenth is not measured\n"
	"  --seed N         the same seed repeats a run (1)\n"
	"  --svg FILE       plots rate, queue and window over time; needs --peers with incast\n"
	"  --json           print one JSON object per line\n"
	"  --help\n"
	"\n"
	"A rate is bits, k, M, G (thousands); octets are k, M (1024); a time is ns, us, ms, s.\n";

struct options {
	struct scenario_config config;
	const char *scenario;
	const char *peers;
	uint32_t timeout;
	bool json;
};

struct unit {
	const char *name;
	double factor;
};

/* A number and one of the units; the first unit needs no name. */
static bool read_unit(const char *text, const struct unit *units, double *v)
{
	char *end;

	*v = strtod(text, &end);
	if (end == text || text[0] == '-' || !(*v >= 0 && *v < 1e15))
		return false;
	if (*end == '\0')
		return true;
	for (; units->name != NULL; units++)
		if (strcmp(end, units->name) == 0) {
			*v *= units->factor;
			return true;
		}
	return false;
}

static const char *read_rate(void *into, const char *value)
{
	static const struct unit units[] = {
		{ "k", 1e3 }, { "M", 1e6 }, { "G", 1e9 }, { NULL, 0 }
	};
	double v;

	if (!read_unit(value, units, &v) || v < 1e6 || v > 1e12)
		return "must be bits a second, 1M .. 1000G";
	*(double *)into = v;
	return NULL;
}

static const char *read_octets(void *into, const char *value)
{
	static const struct unit units[] = { { "k", 1024 }, { "M", 1024 * 1024 }, { NULL, 0 } };
	double v;

	if (!read_unit(value, units, &v) || v > 1024.0 * 1024 * 1024)
		return "must be octets, 0 .. 1024M";
	*(double *)into = v;
	return NULL;
}

static const char *read_size(void *into, const char *value)
{
	double v = 0;

	if (read_octets(&v, value) != NULL || v < 1 || v > 1 << 24)
		return "must be octets, 1 .. 16M";
	*(uint32_t *)into = (uint32_t)v;
	return NULL;
}

static const char *read_buffer(void *into, const char *value)
{
	const char *why = read_octets(into, value);

	return why == NULL && *(double *)into < 16384 ? "must be octets, 16k .. 1024M" : why;
}

static const char *read_time(void *into, const char *value)
{
	static const struct unit units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 }
	};
	double v;

	if (!read_unit(value, units, &v) || v > 10e9)
		return "must be a time, 0 .. 10s";
	*(double *)into = v;
	return NULL;
}

static const char *read_run(void *into, const char *value)
{
	const char *why = read_time(into, value);

	return why == NULL && *(double *)into < 1e5 ? "must be a time, 100us .. 10s" : why;
}

static const char *read_operation(void *into, const char *value)
{
	static const struct {
		const char *name;
		uint8_t opcode;
	} row[] = { { "write", WORK_RDMA_WRITE },
		    { "send", WORK_SEND },
		    { "read", WORK_RDMA_READ } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (strcmp(value, row[i].name) == 0) {
			*(uint8_t *)into = row[i].opcode;
			return NULL;
		}
	return "must be write, send or read";
}

static const char *read_beside(void *into, const char *value)
{
	static const char *const kind[BESIDES] = { "none", "uc", "ud", "cm" };

	for (enum beside_kind i = 0; i < BESIDES; i++)
		if (strcmp(value, kind[i]) == 0) {
			*(enum beside_kind *)into = i;
			return NULL;
		}
	return "must be none, uc, ud or cm";
}

static const char *read_mtu(void *into, const char *value)
{
	static const char *const mtus[] = { "256", "512", "1024", "2048", "4096" };

	for (uint32_t i = 0; i < ARRAY_SIZE(mtus); i++)
		if (strcmp(value, mtus[i]) == 0) {
			*(uint32_t *)into = 256u << i;
			return NULL;
		}
	return "must be 256, 512, 1024, 2048 or 4096";
}

/* The scenario must be known before the other options, because it sets their defaults. */
static const char *find_scenario(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--scenario") == 0)
			return i + 1 < argc ? argv[i + 1] : "";
		if (strncmp(argv[i], "--scenario=", 11) == 0)
			return argv[i] + 11;
	}
	return NULL;
}

bool scenario_wanted(int argc, char **argv)
{
	return find_scenario(argc, argv) != NULL;
}

/* NAME or NAME:N. */
static bool read_scenario(const char *text, struct scenario_config *c)
{
	size_t length = strcspn(text, ":");
	char *end;
	unsigned long n = 0;
	enum scenario s;

	for (s = 0; s < SCENARIOS; s++)
		if (strlen(scenario_name(s)) == length &&
		    strncmp(text, scenario_name(s), length) == 0)
			break;
	if (s == SCENARIOS)
		return false;
	*c = scenario_defaults(s);
	if (text[length] == '\0')
		return true;
	n = strtoul(text + length + 1, &end, 10);
	if (text[length + 1] < '1' || text[length + 1] > '9' || *end != '\0' ||
	    s == SCENARIO_REORDER)
		return false;
	*(s == SCENARIO_MANY ? &c->qps : &c->senders) = (uint32_t)n;
	return n <= (s == SCENARIO_MANY ? 65536 : 1024);
}

static bool read_peers(const char *text, enum peers *peers)
{
	for (*peers = 0; *peers < PEERS; (*peers)++)
		if (strcmp(text, scenario_peers_name(*peers)) == 0)
			return true;
	return false;
}

static bool parse(struct options *o, int argc, char **argv, int *status)
{
	struct scenario_config *c = &o->config;
	const struct option_row rows[] = {
		{ "scenario", .text = &o->scenario },
		{ "peers", .text = &o->peers },
		{ "beside", .read = read_beside, .into = &c->beside },
		{ "operation", .read = read_operation, .into = &c->opcode },
		{ "size", .read = read_size, .into = &c->size },
		{ "depth", .u32 = &c->depth, .least = 1, .most = 16384 },
		{ "qps", .u32 = &c->qps, .least = 1, .most = 65536 },
		{ "mtu", .read = read_mtu, .into = &c->mtu },
		{ "rate", .read = read_rate, .into = &c->rate },
		{ "buffer", .read = read_buffer, .into = &c->buffer },
		{ "ecn", .read = read_octets, .into = &c->ecn },
		{ "shared", .read = read_octets, .into = &c->shared },
		{ "delay", .read = read_time, .into = &c->delay },
		{ "trunk-delay", .read = read_time, .into = &c->trunk_delay },
		{ "loss", .real = &c->loss, .to = 1 },
		{ "reorder", .real = &c->reorder, .to = 1 },
		{ "places", .u32 = &c->places, .least = 1, .most = 1024 },
		{ "ring", .u32 = &c->ring, .least = 1, .most = 1u << 20 },
		{ "packet-time", .read = read_time, .into = &c->packet_time },
		{ "receiver-time", .read = read_time, .into = &c->receiver_time },
		{ "refuse", .real = &c->refuses, .to = 1 },
		{ "refuse-for", .read = read_time, .into = &c->refuses_for },
		{ "forgetful", .flag = &c->forgetful },
		{ "timeout", .read = NULL, .u32 = &o->timeout, .least = 1, .most = 31 },
		{ "time", .read = read_run, .into = &c->time },
		{ "seed", .u64 = &c->seed, .most = UINT64_MAX },
		{ "svg", .text = &c->svg },
		{ "json", .flag = &o->json },
		{ NULL }
	};

	return options_read("sim", help, rows, argc, argv, NULL, status);
}

/* Rows of the table: the peers, and whether the switch marks. */
struct row {
	enum peers peers;
	bool marks;
};

static void say_head(const struct scenario_config *c)
{
	printf("%s: %u senders, %u queue pairs each, %u messages of %u octets each under way; "
	       "%.4g Gbit/s, buffer %.0f KiB, seed %" PRIu64 "\n\n",
	       scenario_name(c->scenario), c->senders, c->qps, c->depth, c->size, c->rate / 1e9,
	       c->buffer / 1024, c->seed);
	printf("| peers | marks past | use | messages/s | dropped | fairness | 50 %% | 99 %% | of ideal | sent again "
	       "| marked | CNPs | longest queue | timeouts | gave up |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

static void say_row(const struct scenario_config *c, const struct scenario_result *r)
{
	char marks[32] = "-";

	if (c->ecn > 0)
		snprintf(marks, sizeof(marks), "%.0f KiB", c->ecn / 1024);
	printf("| %s | %s | %.1f %% | %.0f | %.3f %% | %.3f | %.1f us | %.1f us | %.2f | %.3f %% | %" PRIu64
	       " | %" PRIu64 " | %.0f KiB | %" PRIu64 " | %u |\n",
	       scenario_peers_name(c->peers), marks, r->use * 100, r->rate, r->dropped * 100,
	       r->fairness, r->median / 1e3, r->slow / 1e3, r->slow / r->ideal, r->again * 100,
	       r->marked, r->cnps, (double)r->longest / 1024, r->timeouts, r->failed);
	if (r->overflowed + r->refused > 0)
		printf("\n%" PRIu64 " frames found a receive ring full; ports refused %" PRIu64
		       " times\n",
		       r->overflowed, r->refused);
	if (r->beside_sent > 0 && c->beside == BESIDE_CM)
		printf("\n%" PRIu64 " of %" PRIu64 " connections were made\n", r->beside_arrived,
		       r->beside_sent);
	else if (r->beside_sent > 0)
		printf("\n%" PRIu64 " of %" PRIu64 " messages that nothing acknowledges arrived\n",
		       r->beside_arrived, r->beside_sent);
	fflush(stdout);
}

static void say_json(const struct scenario_config *c, const struct scenario_result *r)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "scenario", scenario_name(c->scenario));
	json_string(&j, "peers", scenario_peers_name(c->peers));
	json_integer(&j, "seed", c->seed);
	json_integer(&j, "senders", c->senders);
	json_integer(&j, "qps", c->qps);
	json_integer(&j, "size", c->size);
	json_integer(&j, "depth", c->depth);
	json_number(&j, "rate", c->rate);
	json_number(&j, "buffer", c->buffer);
	json_number(&j, "ecn", c->ecn);
	json_bool(&j, "ok", r->ok);
	json_number(&j, "use", r->use);
	json_number(&j, "dropped", r->dropped);
	json_number(&j, "fairness", r->fairness);
	json_number(&j, "median_ns", r->median);
	json_number(&j, "p99_ns", r->slow);
	json_number(&j, "p999_ns", r->slowest);
	json_number(&j, "ideal_ns", r->ideal);
	json_number(&j, "again", r->again);
	json_integer(&j, "messages", r->messages);
	json_number(&j, "messages_per_second", r->rate);
	json_integer(&j, "packets", r->packets);
	json_integer(&j, "marked", r->marked);
	json_integer(&j, "cnps", r->cnps);
	json_integer(&j, "overflowed", r->overflowed);
	json_integer(&j, "refused", r->refused);
	json_integer(&j, "longest_queue", r->longest);
	json_integer(&j, "timeouts", r->timeouts);
	json_integer(&j, "gave_up", r->failed);
	json_integer(&j, "beside_sent", r->beside_sent);
	json_integer(&j, "beside_arrived", r->beside_arrived);
	json_close(&j, '}');
}

static bool run_row(const struct options *o, const struct row *row)
{
	struct scenario_config c = o->config;
	struct scenario_result r;

	c.peers = row->peers;
	if (!row->marks)
		c.ecn = 0;
	scenario_run(&c, &r);
	if (o->json)
		say_json(&c, &r);
	else
		say_row(&c, &r);
	if (!r.ok)
		fprintf(stderr, "%s, %s, seed %" PRIu64 ": %s\n", scenario_name(c.scenario),
			scenario_peers_name(c.peers), c.seed, r.why);
	return r.ok;
}

/* All kinds of peers after one another, or the one that was asked for. */
static bool run_rows(const struct options *o)
{
	static const struct row all[] = { { PEERS_UROCE, true },
					  { PEERS_UROCE, false },
					  { PEERS_DCQCN, true },
					  { PEERS_LINUX, false },
					  { PEERS_MIXED, true } };
	struct row one = { .peers = o->config.peers, .marks = o->config.ecn > 0 };
	bool ok = true;

	if (o->peers != NULL || o->config.scenario != SCENARIO_INCAST ||
	    o->config.opcode != WORK_RDMA_WRITE)
		return run_row(o, &one);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!all[i].marks || o->config.ecn > 0)
			ok &= run_row(o, &all[i]);
	return ok;
}

int scenario_main(int argc, char **argv)
{
	struct options o = { 0 };
	const char *why, *name = find_scenario(argc, argv);
	char text[256];
	int status = 0;

	if (!read_scenario(name, &o.config)) {
		snprintf(
			text, sizeof(text),
			"--scenario %s: must be incast[:N], bottleneck[:N] (N in 1 .. 1024), reorder "
			"or many[:N] (1 .. 65536)",
			name);
		return options_refuse("sim", text);
	}
	o.timeout = o.config.timeout;
	if (!parse(&o, argc, argv, &status))
		return status;
	o.config.timeout = (uint8_t)o.timeout;
	if (o.peers != NULL && !read_peers(o.peers, &o.config.peers)) {
		snprintf(text, sizeof(text), "--peers %s: must be uroce, linux, dcqcn or mixed",
			 o.peers);
		return options_refuse("sim", text);
	}
	why = scenario_refuses(&o.config);
	if (why == NULL && o.config.svg != NULL && o.config.scenario == SCENARIO_INCAST &&
	    o.peers == NULL)
		why = "--svg shows one row of incast: choose it with --peers";
	if (why != NULL)
		return options_refuse("sim", why);
	if (!o.json)
		say_head(&o.config);
	return run_rows(&o) ? 0 : 1;
}
