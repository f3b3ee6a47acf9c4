/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures as text or JSON, alike for both ends in one process and on two machines. */
#ifndef APPS_PERF_REPORT_H
#define APPS_PERF_REPORT_H

#include "json.h"
#include "perf.h"

void limits_text(const struct limit_result *l);
void limits_json(struct json *j, const struct limit_result *l);

/* A loss is per cent of the frames; negative: net_impair is not there. */
void latency_head(bool lossy);
void latency_text(uint32_t size, double loss, const struct histogram *h);
void latency_json(struct json *j, uint32_t size, double loss, const struct histogram *h);

#endif
