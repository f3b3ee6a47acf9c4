/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of an engine by their names: its own, and those that Linux's drivers have too, by the
 * names of rxe and mlx5 in /sys/class/infiniband/DEVICE/ports/1/hw_counters (for rdma(8) and what
 * people have built on these names).
 */
#ifndef APPS_COUNTERS_H
#define APPS_COUNTERS_H

#include <stdint.h>
#include <stdio.h>

#include "base/reason.h"
#include "protocol/command.h"

#define COUNTER_REASONS 2

/* A number of the statistics, or the sum of some reasons. */
struct counter {
	const char *name; /* its key in JSON */
	const char *what; /* in the middle of a sentence */
	size_t offset; /* of a uint64_t in struct reply_statistics; 0: see `reason` */
	enum reason reason[COUNTER_REASONS]; /* REASON_NONE: none */
};

/* Each ends with a NULL name. */
extern const struct counter own_counters[];
extern const struct counter memory_counters[];
extern const struct counter linux_counters[];
/* Why memory was refused; ends with REASON_NONE. */
extern const enum reason memory_reasons[];

uint64_t counter_value(const struct reply_statistics *s, const struct counter *c);

/* Objects of all kinds, of all programs. */
uint64_t counter_objects(const struct reply_statistics *s);

/* The counts since `before`, for every counter that only grows; the others stay as in `now`. */
void counters_since(struct reply_statistics *now, const struct reply_statistics *before);

/* A table for people. `all`: reasons that never occurred, too. */
void counters_print(FILE *out, const struct reply_statistics *s, bool all);

/* The counters of memory, including refusals by reason. */
void counters_print_memory(FILE *out, const struct reply_statistics *s);

/* The text exposition format of Prometheus, with HELP and TYPE lines. */
void counters_print_prometheus(FILE *out, const struct reply_device *d,
			       const struct reply_statistics *s);

#endif
