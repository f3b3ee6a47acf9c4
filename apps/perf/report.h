/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures as text or JSON, alike for both ends in one process and on two machines. */
#ifndef APPS_PERF_REPORT_H
#define APPS_PERF_REPORT_H

#include "json.h"
#include "perf.h"

void limits_text(const struct limit_result *l);
void limits_json(struct json *j, const struct limit_result *l);

/* The first columns of a table that has them, and what they are called. */
void flaws_head(const struct perf_options *o);
void flaws_text(const struct perf_flaws *f);
void flaws_json(struct json *j, const struct perf_flaws *f);

void latency_head(const struct perf_options *o);
void latency_text(uint32_t size, const struct perf_flaws *f, const struct histogram *h);
void latency_json(struct json *j, uint32_t size, const struct perf_flaws *f,
		  const struct histogram *h);

#endif
