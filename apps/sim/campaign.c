/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce sim --campaign: very many seeds of a grid of settings, in a table. */
#include "campaign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "options.h"
#include "sim/campaign/campaign.h"
#include "sim/campaign/grid.h"

#define SAID_FAILURES 20u

static const char help[] =
	"usage: uroce sim --campaign FILE [OPTIONS]\n"
	"\n"
	"Runs many seeds of each of 30 settings (5 links, 6 loads) on all processors, and prints a\n"
	"table. FILE keeps the results. The same command continues a campaign that was\n"
	"interrupted. A run that crashes or hangs is a failure like any other.\n"
	"\n"
	"  --seeds N       of each setting (100)\n"
	"  --seed N        the first (1)\n"
	"  --messages N    in each direction of each connection (40)\n"
	"  --jobs N        processes at a time (one for each processor)\n"
	"  --patience S    processor seconds after which a run counts as hanging (120)\n"
	"  --json          print one JSON object per line\n"
	"  --help\n"
	"\n"
	"The exit status is 1 if a run failed; the command that repeats it is printed.\n";

bool campaign_wanted(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--campaign") == 0 || strncmp(argv[i], "--campaign=", 11) == 0)
			return true;
	return false;
}

static bool parse(struct campaign *c, bool *json, int argc, char **argv, int *status)
{
	const struct option_row rows[] = {
		{ "campaign", .text = &c->path },
		{ "seed", .u64 = &c->seed, .most = UINT64_MAX },
		{ "seeds", .u32 = &c->seeds, .least = 1, .most = 10000000 },
		{ "messages", .u32 = &c->messages, .least = 1, .most = UINT32_MAX },
		{ "jobs", .u32 = &c->jobs, .least = 1, .most = CAMPAIGN_JOBS },
		{ "patience", .u32 = &c->patience, .least = 1, .most = 86400 },
		{ "json", .flag = json },
		{ NULL }
	};

	return options_read("sim", help, rows, argc, argv, NULL, status);
}

/* FNV-1a over this program: the simulator is a part of it. */
static uint64_t program_sum(void)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);
	FILE *f = fopen("/proc/self/exe", "r");
	int octet;

	if (f == NULL)
		return sum;
	while ((octet = getc_unlocked(f)) != EOF)
		sum = (sum ^ (uint8_t)octet) * UINT64_C(0x100000001b3);
	fclose(f);
	return sum;
}

/* Reports each twentieth part. */
static void progress(uint64_t done, uint64_t all, uint64_t failed)
{
	static uint64_t told;
	uint64_t part = done * 20 / all;

	if (part == told)
		return;
	told = part;
	fprintf(stderr, "%" PRIu64 " of %" PRIu64 " runs, %" PRIu64 " failed\n", done, all, failed);
}

static void say_row(const char *name, const struct tally *t)
{
	printf("| %s | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64
	       " | %" PRIu64 " | %.1f |\n",
	       name, t->runs, t->failed, t->messages, t->packets, t->lost, t->broken,
	       (double)t->time / 1e9);
}

static void say_table(const struct campaign *c, const struct campaign_result *r)
{
	struct tally all = { 0 };

	printf("| link, load | seeds | failed | messages | packets | lost | connections that failed as they "
	       "should | virtual s |\n|---|---|---|---|---|---|---|---|\n");
	for (uint32_t i = 0; i < c->settings; i++) {
		say_row(grid_name(i), &r->of[i]);
		tally_add(&all, &r->of[i]);
	}
	say_row("all", &all);
}

static void say_json(const struct campaign *c, const struct campaign_result *r)
{
	struct json j = { .out = stdout };

	for (uint32_t i = 0; i < c->settings; i++) {
		const struct tally *t = &r->of[i];

		json_open(&j, NULL, '{');
		json_string(&j, "setting", grid_name(i));
		json_integer(&j, "seeds", t->runs);
		json_integer(&j, "failed", t->failed);
		json_integer(&j, "messages", t->messages);
		json_integer(&j, "packets", t->packets);
		json_integer(&j, "lost", t->lost);
		json_integer(&j, "broken", t->broken);
		json_integer(&j, "virtual_ns", t->time);
		json_close(&j, '}');
	}
}

static void say_option(const char *name, double v)
{
	if (v != SIM_FROM_SEED)
		fprintf(stderr, " --%s %g", name, v);
}

static void say_failure(const struct campaign *c, const struct campaign_failure *f)
{
	struct sim_config s = grid_config(f->setting);

	fprintf(stderr,
		"%s, seed %" PRIu64 ": %s\nrepeat with: uroce sim --seed %" PRIu64 " --messages %u",
		grid_name(f->setting), f->seed, f->why, f->seed, c->messages);
	if (s.qps != 0)
		fprintf(stderr, " --qps %u", s.qps);
	say_option("loss", s.loss);
	say_option("duplicate", s.duplicate);
	say_option("reorder", s.reorder);
	say_option("corrupt", s.corrupt);
	say_option("faults", s.faults);
	say_option("fail-copies", s.fail_copies);
	say_option("xrc", s.xrc);
	fprintf(stderr, "%s\n", s.unreliable ? " --unreliable" : "");
}

static uint64_t say_failures(const struct campaign *c, const struct campaign_result *r)
{
	uint64_t failed = 0;

	for (uint32_t i = 0; i < c->settings; i++)
		failed += r->of[i].failed;
	for (uint32_t i = 0; i < r->failures && i < SAID_FAILURES; i++)
		say_failure(c, &r->failure[i]);
	if (failed > SAID_FAILURES)
		fprintf(stderr, "and %" PRIu64 " more, in %s\n", failed - SAID_FAILURES, c->path);
	return failed;
}

int campaign_main(int argc, char **argv)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct campaign c = { .settings = GRID_SETTINGS,
			      .seed = 1,
			      .seeds = 100,
			      .messages = 40,
			      .jobs = processors < 1			 ? 1
				      : processors > (long)CAMPAIGN_JOBS ? CAMPAIGN_JOBS
									 : (uint32_t)processors,
			      .patience = 120,
			      .config = grid_config,
			      .run = sim_run,
			      .progress = progress };
	struct campaign_result r;
	bool json = false, ok;
	char why[256];
	int status = 0;

	if (!parse(&c, &json, argc, argv, &status))
		return status;
	c.program = program_sum();
	if (!campaign_execute(&c, &r, why)) {
		campaign_free(&r);
		return options_refuse("sim", why);
	}
	if (r.before > 0)
		fprintf(stderr, "%" PRIu64 " of these runs are of earlier\n", r.before);
	if (json)
		say_json(&c, &r);
	else
		say_table(&c, &r);
	ok = say_failures(&c, &r) == 0;
	campaign_free(&r);
	return ok ? 0 : 1;
}
