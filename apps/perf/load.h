/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_LOAD_H
#define APPS_PERF_LOAD_H

#include <time.h>

#include "base/time.h"
#include "perf.h"

static inline nanotime time_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (nanotime)ts.tv_sec * TIME_S + (nanotime)ts.tv_nsec;
}

/* Posts n receives of the whole buffer on b's queue pair. 0 or an errno. */
int receives_post(struct perf_pair *p, uint32_t qp, uint32_t n);

#endif
