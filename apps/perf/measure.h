/* SPDX-License-Identifier: BSD-3-Clause */
/* What `uroce perf --report` measures, one figure after another. */
#ifndef APPS_PERF_MEASURE_H
#define APPS_PERF_MEASURE_H

#include "perf.h"

/* Measures, and writes the page into o->report. The exit status. */
int measure_report(struct perf_options *o);

#endif
