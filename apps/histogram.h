/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A log-linear histogram of durations, like HdrHistogram: every power of two is divided into 128
 * equal steps. Values from 1 ns to an hour are kept with an error below one percent, in a fixed
 * number of counters; recording one is one addition.
 *
 *	value   0 .. 255       256 .. 511    512 .. 1023   ...
 *	step    1              2             4             ...
 */
#ifndef APPS_HISTOGRAM_H
#define APPS_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEP_BITS 7u
#define HISTOGRAM_STEPS	    (1u << HISTOGRAM_STEP_BITS)
#define HISTOGRAM_MAX_BITS  42u /* 2^42 ns: 73 minutes; larger values are clamped */
#define HISTOGRAM_SLOTS	    ((HISTOGRAM_MAX_BITS - HISTOGRAM_STEP_BITS + 1) * HISTOGRAM_STEPS)

struct histogram {
	uint64_t count;
	uint64_t max; /* exact */
	uint64_t min; /* exact; UINT64_MAX while empty */
	uint64_t slot[HISTOGRAM_SLOTS];
};

void histogram_init(struct histogram *h);
void histogram_add(struct histogram *h, uint64_t value);

/*
 * The value that `percent` of all values (0 < percent <= 100) do not exceed: the upper end of its
 * slot, at most the largest value recorded. 0 while empty.
 */
uint64_t histogram_percentile(const struct histogram *h, double percent);

#endif
