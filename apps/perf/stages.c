/* SPDX-License-Identifier: BSD-3-Clause */
#include "stages.h"

#include "control/statistics.h"
#include "progress.h"

/*
 * One round in this many is measured: few, so that rates hardly change; odd, so that no rhythm is
 * met.
 */
#define EVERY 7

int stages_load(struct perf_pair *p, enum perf_operation operation, uint32_t size, uint32_t qps,
		struct load_result *r, struct stages_result *stages)
{
	int failed;

	uroce_cycles_start(p->a.engine, EVERY, CYCLES_MS);
	uroce_cycles_start(p->b.engine, EVERY, CYCLES_MS);
	failed = load_run(p, operation, size, qps, r);
	uroce_cycles(p->a.engine, &stages->a);
	uroce_cycles(p->b.engine, &stages->b);
	uroce_cycles_start(p->a.engine, EVERY, 0);
	uroce_cycles_start(p->b.engine, EVERY, 0);
	return failed;
}

struct cycles_table stages_table(const struct stages_result *r)
{
	return (struct cycles_table){
		.columns = 2,
		.name = { "asks", "answers" },
		.of = { &r->a, &r->b },
	};
}

static const struct {
	const char *name;
	enum perf_operation operation;
	uint32_t size;
} loads[BARS_LOADS] = {
	{ "RDMA WRITE of 8 octets", PERF_WRITE, 8 },
	{ "SEND of 8 octets", PERF_SEND, 8 },
	{ "RDMA WRITE of 64 KiB", PERF_WRITE, 65536 },
};

int stages_bars(struct perf_pair *p, const struct limit_result *l, struct bars *b)
{
	static struct stages_result stages;
	struct cycles_table t = stages_table(&stages);
	struct load_result r;

	for (uint32_t i = 0; i < BARS_LOADS; i++) {
		double frames = limits_of_one(l, loads[i].size) *
				(loads[i].size == 8 ? 1 : loads[i].size / p->options->mtu);

		progress_step("cycles by stage, %s", loads[i].name);
		if (stages_load(p, loads[i].operation, loads[i].size, 1, &r, &stages) != 0)
			return 1;
		b->load[i].name = loads[i].name;
		b->load[i].limit = (double)stages.a.hz / frames;
		b->load[i].all = cycles_both_ends(&t, STAGE_COUNT);
		for (enum stage s = 0; s < STAGE_COUNT; s++)
			b->load[i].cycles[s] = cycles_both_ends(&t, s);
	}
	b->loads = BARS_LOADS;
	return 0;
}
