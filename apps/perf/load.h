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
/* Posts those again that were used. Returns how many, or -1. */
int receives_turn(struct perf_pair *p);
/* One WRITE of the ping-pong, at this place of both buffers. 0 or an errno. */
int write_once(struct perf_side *from, uint32_t at, uint32_t size);
/* Takes what requests have completed. 0 or 1. */
int completions_take(struct perf_side *s);

#endif
