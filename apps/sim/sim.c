/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce sim: runs the simulator. A failure prints the command that repeats it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "campaign.h"
#include "options.h"
#include "scenario.h"
#include "sim/sim.h"

static const char help[] =
	"usage: uroce sim [OPTIONS]\n"
	"       uroce sim --scenario incast[:N] | bottleneck[:N] | reorder | many[:N] [OPTIONS]\n"
	"       uroce sim --campaign FILE [OPTIONS]\n"
	"\n"
	"Simulates two nodes with connections over a bad link, doing random work in virtual time.\n"
	"Checks that every message arrives once, in order, unchanged, and in the right place.\n"
	"With --scenario there are more nodes, and switches: --scenario many --help says more.\n"
	"With --campaign very many seeds are run, on all processors: --campaign FILE --help says more.\n"
	"\n"
	"  --seed N        the first seed (1); a run is repeated by its seed\n"
	"  --seeds COUNT   number of runs, with consecutive seeds (1)\n"
	"  --messages N    number of messages in each direction of each connection (500)\n"
	"  --qps N         number of connections, 1 .. 32\n"
	"  --loss P        probability that a frame is lost\n"
	"  --duplicate P   probability that it arrives twice\n"
	"  --reorder P     probability that others overtake it\n"
	"  --corrupt P     probability that bits of it flip\n"
	"  --delay NS      delay of the link\n"
	"  --faults P      probability that a connection has a fault\n"
	"  --fail-copies P probability that an access to registered memory fails\n"
	"  --xrc P         probability that a connection is XRC\n"
	"  --unreliable    UC and UD queue pairs: messages may be lost, but arrive whole\n"
	"  --pcap FILE     write the link's packets to FILE\n"
	"  --bench         use a good link and short messages, and print packets per second\n"
	"  --json          print one JSON object per line\n"
	"  --help\n"
	"\n"
	"The seed chooses everything that is not given.\n";

struct options {
	struct sim_config config;
	uint64_t seeds;
	bool json;
};

static bool parse(struct options *o, int argc, char **argv, int *status)
{
	struct sim_config *c = &o->config;
	const struct option_row rows[] = {
		{ "seed", .u64 = &c->seed, .most = UINT64_MAX },
		{ "seeds", .u64 = &o->seeds, .least = 1, .most = UINT64_MAX },
		{ "messages", .u32 = &c->messages, .least = 1, .most = UINT32_MAX },
		{ "qps", .u32 = &c->qps, .least = 1, .most = SIM_PAIRS },
		{ "loss", .real = &c->loss, .to = 1 },
		{ "duplicate", .real = &c->duplicate, .to = 1 },
		{ "reorder", .real = &c->reorder, .to = 1 },
		{ "corrupt", .real = &c->corrupt, .to = 1 },
		{ "delay", .real = &c->delay, .to = 1e9 },
		{ "faults", .real = &c->faults, .to = 1 },
		{ "fail-copies", .real = &c->fail_copies, .to = 1 },
		{ "xrc", .real = &c->xrc, .to = 1 },
		{ "unreliable", .flag = &c->unreliable },
		{ "pcap", .text = &c->pcap },
		{ "bench", .flag = &c->bench },
		{ "json", .flag = &o->json },
		{ NULL }
	};

	return options_read("sim", help, rows, argc, argv, NULL, status);
}

/* Prints the options that repeat this run. */
static void say_replay(const struct sim_config *c)
{
	const struct {
		const char *word;
		double v;
	} given[] = { { "loss", c->loss },
		      { "duplicate", c->duplicate },
		      { "reorder", c->reorder },
		      { "corrupt", c->corrupt },
		      { "delay", c->delay },
		      { "faults", c->faults },
		      { "fail-copies", c->fail_copies },
		      { "xrc", c->xrc } };

	fprintf(stderr, "repeat with: uroce sim --seed %" PRIu64 " --messages %u", c->seed,
		c->messages);
	if (c->qps != 0)
		fprintf(stderr, " --qps %u", c->qps);
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		if (given[i].v >= 0)
			fprintf(stderr, " --%s %.17g", given[i].word, given[i].v);
	fprintf(stderr, "%s%s\n", c->unreliable ? " --unreliable" : "", c->bench ? " --bench" : "");
}

static double seconds_of(const struct timespec *t)
{
	return (double)t->tv_sec + (double)t->tv_nsec / 1e9;
}

static void say(const struct options *o, const struct sim_result *r, double seconds)
{
	double rate = (double)r->link.sent / seconds;

	if (o->json)
		printf("{\"seed\": %" PRIu64 ", \"ok\": %s, \"messages\": %" PRIu64
		       ", \"octets\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"lost\": %" PRIu64
		       ", \"duplicated\": %" PRIu64 ", \"reordered\": %" PRIu64
		       ", \"corrupted\": %" PRIu64 ", \"broken\": %" PRIu64
		       ", \"virtual_ns\": %" PRIu64 ", \"packets_per_second\": %.0f}\n",
		       o->config.seed, r->ok ? "true" : "false", r->messages, r->octets,
		       r->link.sent, r->link.lost, r->link.duplicated, r->link.reordered,
		       r->link.corrupted, r->broken, r->time, rate);
	else if (o->config.bench)
		printf("seed %" PRIu64 ": %" PRIu64 " messages, %" PRIu64
		       " packets in %.2f s: %.2f million packets per second\n",
		       o->config.seed, r->messages, r->link.sent, seconds, rate / 1e6);
	else if (o->seeds == 1)
		printf("seed %" PRIu64 ": %" PRIu64 " messages, %" PRIu64 " octets, %" PRIu64
		       " packets (%" PRIu64 " lost, %" PRIu64 " duplicated, %" PRIu64
		       " reordered, %" PRIu64 " corrupted), %" PRIu64
		       " connections failed as expected, %.3f s of virtual time\n",
		       o->config.seed, r->messages, r->octets, r->link.sent, r->link.lost,
		       r->link.duplicated, r->link.reordered, r->link.corrupted, r->broken,
		       (double)r->time / 1e9);
}

static bool run_one(const struct options *o, struct sim_result *r)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	sim_run(&o->config, r);
	clock_gettime(CLOCK_MONOTONIC, &to);
	say(o, r, seconds_of(&to) - seconds_of(&from));
	if (r->ok)
		return true;
	fprintf(stderr, "seed %" PRIu64 " fails: %s\n", o->config.seed, r->why);
	say_replay(&o->config);
	return false;
}

static void bench_defaults(struct options *o, bool messages_given)
{
	struct sim_config *c = &o->config;
	double *probability[] = { &c->loss,   &c->duplicate,   &c->reorder, &c->corrupt,
				  &c->faults, &c->fail_copies, &c->xrc };

	for (size_t i = 0; i < sizeof(probability) / sizeof(probability[0]); i++)
		if (*probability[i] < 0)
			*probability[i] = 0;
	if (c->qps == 0)
		c->qps = 4;
	if (!messages_given)
		c->messages = 200000;
}

int sim_main(int argc, char **argv)
{
	struct options o = { .config = sim_defaults(), .seeds = 1 };
	struct sim_result r;
	uint64_t failed = 0, first, messages = 0, packets = 0;
	int status = 0;

	if (scenario_wanted(argc, argv))
		return scenario_main(argc, argv);
	if (campaign_wanted(argc, argv))
		return campaign_main(argc, argv);
	o.config.messages = 0;
	if (!parse(&o, argc, argv, &status))
		return status;
	if (o.config.bench)
		bench_defaults(&o, o.config.messages != 0);
	if (o.config.messages == 0)
		o.config.messages = sim_defaults().messages;
	first = o.config.seed;
	for (uint64_t i = 0; i < o.seeds; i++) {
		o.config.seed = first + i;
		failed += !run_one(&o, &r);
		messages += r.messages;
		packets += r.link.sent;
	}
	if (o.seeds > 1 && !o.json)
		printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " failed; %" PRIu64
		       " messages, %" PRIu64 " packets\n",
		       o.seeds, first, failed, messages, packets);
	return failed == 0 ? 0 : 1;
}
