/* SPDX-License-Identifier: BSD-3-Clause */
/* --cycles: where the time of both engines goes while a load runs. */
#ifndef APPS_PERF_STAGES_H
#define APPS_PERF_STAGES_H

#include "bars.h"
#include "cycles.h"
#include "perf.h"

struct stages_result {
	struct reply_cycles a, b; /* of the engine that asks, and of the other */
};

/* load_run(), its stages measured. */
int stages_load(struct perf_pair *p, enum perf_operation operation, uint32_t size, uint32_t qps,
		struct load_result *r, struct stages_result *stages);
/* Loads of the report, one after another. */
int stages_bars(struct perf_pair *p, const struct limit_result *l, struct bars *b);
/* As a table. */
struct cycles_table stages_table(const struct stages_result *r);

#endif
