/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Campaigns, mostly with runs that only count: which runs were made, their results, and the file.
 */
#include "campaign.h"

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "grid.h"

#define SETTINGS 3u
#define SEEDS	 50u /* not a whole number of units */
#define FIRST	 1000u

TestSuite(campaign, .timeout = 600);

static char path[] = "/tmp/campaign_XXXXXX";
static uint32_t *made; /* how often each seed of each setting was run, by all processes */

static struct sim_config config(uint32_t setting)
{
	struct sim_config c = sim_defaults();

	c.qps = setting + 1; /* says which it is */
	return c;
}

static uint32_t index_of(const struct sim_config *c)
{
	return (c->qps - 1) * SEEDS + (uint32_t)(c->seed - FIRST);
}

static void count(const struct sim_config *c, struct sim_result *r)
{
	__atomic_add_fetch(&made[index_of(c)], 1, __ATOMIC_RELAXED);
	*r = (struct sim_result){
		.ok = true, .messages = c->messages, .link.sent = c->seed, .time = 1
	};
}

static struct campaign begin(void)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	made = mmap(NULL, SETTINGS * SEEDS * sizeof(*made), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(made, MAP_FAILED);
	return (struct campaign){ .path = path,
				  .program = 77,
				  .settings = SETTINGS,
				  .seed = FIRST,
				  .seeds = SEEDS,
				  .messages = 3,
				  .jobs = 4,
				  .patience = 1,
				  .config = config,
				  .run = count };
}

static void execute(const struct campaign *c, struct campaign_result *r)
{
	char why[256] = "";

	cr_assert(campaign_execute(c, r, why), "%s", why);
}

static void refused(const struct campaign *c, const char *wanted)
{
	struct campaign_result r;
	char why[256] = "";

	cr_assert_not(campaign_execute(c, &r, why));
	cr_assert_not_null(strstr(why, wanted), "\"%s\" does not say \"%s\"", why, wanted);
	campaign_free(&r);
}

static void whole(const struct campaign_result *r, uint64_t failed)
{
	uint64_t failures = 0;

	for (uint32_t i = 0; i < SETTINGS; i++) {
		cr_assert_eq(r->of[i].runs, SEEDS);
		failures += r->of[i].failed;
	}
	cr_assert_eq(failures, failed);
	cr_assert_eq(r->failures, failed);
}

Test(campaign, runs_each_seed_of_each_setting_once)
{
	struct campaign c = begin();
	struct campaign_result r;

	execute(&c, &r);
	whole(&r, 0);
	for (uint32_t i = 0; i < SETTINGS * SEEDS; i++)
		cr_assert_eq(made[i], 1, "run %u was made %u times", i, made[i]);
	for (uint32_t i = 0; i < SETTINGS; i++) {
		cr_assert_eq(r.of[i].messages, 3 * SEEDS);
		cr_assert_eq(r.of[i].packets, SEEDS * FIRST + SEEDS * (SEEDS - 1) / 2);
		cr_assert_eq(r.of[i].time, SEEDS);
	}
	campaign_free(&r);
	/* A campaign that is complete runs nothing. */
	execute(&c, &r);
	whole(&r, 0);
	cr_assert_eq(r.before, SETTINGS * SEEDS);
	cr_assert_eq(made[0], 1);
	campaign_free(&r);
	unlink(path);
}

static void fail(const struct sim_config *c, struct sim_result *r)
{
	count(c, r);
	if (c->qps == 2 && c->seed == FIRST + 5)
		raise(SIGKILL);
	if (c->qps == 3 && c->seed == FIRST + SEEDS - 1) {
		r->ok = false;
		snprintf(r->why, sizeof(r->why), "two\nlines");
	}
}

static void misbehave(const struct sim_config *c, struct sim_result *r)
{
	fail(c, r);
	while (c->qps == 2 && c->seed == FIRST + 6)
		;
}

static const char *why_of(const struct campaign_result *r, uint32_t setting, uint64_t seed)
{
	for (uint32_t i = 0; i < r->failures; i++)
		if (r->failure[i].setting == setting && r->failure[i].seed == seed)
			return r->failure[i].why;
	return "did not fail";
}

/* A run that crashes or hangs is a failure like any other, and the seeds after it are run. */
static void as_misbehaved(const struct campaign_result *r, bool hung)
{
	whole(r, hung ? 3 : 2);
	cr_assert_str_eq(why_of(r, 1, FIRST + 5), "Killed");
	cr_assert_str_eq(why_of(r, 1, FIRST + 6), hung ? "does not end in 1 s" : "did not fail");
	cr_assert_str_eq(why_of(r, 2, FIRST + SEEDS - 1), "two lines");
}

Test(campaign, a_run_that_crashes_or_hangs_is_one_failure)
{
	struct campaign c = begin();
	struct campaign_result r;

	c.run = misbehave;
	execute(&c, &r);
	as_misbehaved(&r, true);
	for (uint32_t i = 0; i < SETTINGS * SEEDS; i++)
		cr_assert_eq(made[i], 1, "run %u was made %u times", i, made[i]);
	campaign_free(&r);
	execute(&c, &r); /* the file has the failures, too */
	as_misbehaved(&r, true);
	campaign_free(&r);
	unlink(path);
}

static long size_of_file(void)
{
	int fd = open(path, O_RDONLY);
	long size = lseek(fd, 0, SEEK_END);

	close(fd);
	return size;
}

/* A killed campaign goes on, wherever it was killed: each run counts once. */
Test(campaign, goes_on_where_it_stopped)
{
	struct campaign c = begin();
	struct campaign_result r;
	long size;

	c.run = fail;
	execute(&c, &r);
	campaign_free(&r);
	size = size_of_file();
	for (int cut = 1; cut <= 4; cut++) { /* usually in the middle of a line */
		cr_assert_eq(truncate(path, size - cut * 37), 0);
		execute(&c, &r);
		as_misbehaved(&r, false);
		cr_assert(r.before > 0 && r.before < SETTINGS * SEEDS, "%llu runs before",
			  (unsigned long long)r.before);
		campaign_free(&r);
	}
	unlink(path);
}

Test(campaign, does_not_mix_what_differs)
{
	struct campaign c = begin(), other = c;
	struct campaign_result r;

	execute(&c, &r);
	campaign_free(&r);
	other.messages++;
	refused(&other, "other options");
	other = c;
	other.program++;
	refused(&other, "another build");
	unlink(path);
}

Test(campaign, does_not_touch_files_of_others)
{
	struct campaign c = begin();
	static const char text[] = "a letter to somebody\n";
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
	refused(&c, "is not the file of a campaign");
	cr_assert_eq(size_of_file(), sizeof(text) - 1);
	c.path = "/nonexistent/campaign";
	refused(&c, "/nonexistent/campaign: No such file");
	unlink(path);
}

Test(campaign, one_at_a_time)
{
	struct campaign c = begin();
	int fd = open(path, O_RDONLY);

	cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	refused(&c, "another campaign is at work on it");
	cr_assert_eq(made[0], 0);
	close(fd);
	unlink(path);
}

/* The real grid: every setting in a short form. */
Test(campaign, every_setting_holds)
{
	struct campaign c = begin();
	struct campaign_result r;

	c.settings = GRID_SETTINGS;
	c.seeds = 1;
	c.messages = 10;
	c.patience = 100;
	c.config = grid_config;
	c.run = sim_run;
	execute(&c, &r);
	for (uint32_t i = 0; i < r.failures; i++)
		cr_log_error("%s, seed %llu: %s", grid_name(r.failure[i].setting),
			     (unsigned long long)r.failure[i].seed, r.failure[i].why);
	cr_assert_eq(r.failures, 0);
	for (uint32_t i = 0; i < GRID_SETTINGS; i++) {
		cr_assert_eq(r.of[i].runs, 1);
		cr_assert_gt(r.of[i].packets, 0, "%s", grid_name(i));
		for (uint32_t k = 0; k < i; k++) {
			struct sim_config a = grid_config(i), b = grid_config(k);

			cr_assert_neq(memcmp(&a, &b, sizeof(a)), 0);
		}
	}
	campaign_free(&r);
	unlink(path);
}
