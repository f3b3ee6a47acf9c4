/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When completions are counted. Queue pairs take turns, so with thousands of them all complete at nearly the same
 * time, and before that none does: 4096 of them with 16 requests of 64 KiB have 4 GiB to move before the first
 * completion. So whole rounds are counted: from the instant at which every queue pair has completed something to
 * one at which every queue pair has done so again.
 */
#ifndef APPS_PERF_ROUNDS_H
#define APPS_PERF_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct rounds {
	uint32_t *of; /* of each queue pair: the last round in which it completed something */
	uint32_t qps;
	uint32_t round,
		left; /* the one at hand, from 1 on, and for how many queue pairs it waits */
	uint64_t done; /* completions so far, */
	uint64_t first_done, last_done; /* ... when the first round and the last one were over */
	nanotime first_at, last_at;
};

/* 0; else there is no memory, and it need only be ended. */
int rounds_begin(struct rounds *r, uint32_t qps);
void rounds_end(struct rounds *r);

void rounds_completed(struct rounds *r, uint32_t qp);
/* All that was completed so far was so by now. True: a round is over. */
bool rounds_at(struct rounds *r, nanotime now);
/* The rounds behind the first one have lasted for that time. */
bool rounds_enough(const struct rounds *r, nanotime time);

#endif
