/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bars of `uroce perf --report`: a group for each stage of the data path, a bar in it for each load.
 */
#ifndef APPS_PERF_BARS_H
#define APPS_PERF_BARS_H

#include <stdint.h>
#include <stdio.h>

#include "base/stage.h"

struct json;

#define BARS_LOADS 3u /* the page has a colour for each */

struct bars {
	uint32_t loads; /* 0: there are none */
	struct {
		const char *name;
		double cycles[STAGE_COUNT]; /* a packet, of both ends */
		double all, limit; /* their sum; what a frame takes without an engine */
	} load[BARS_LOADS];
};

/* A <figure> with its numbers. */
void bars_write(FILE *out, const struct bars *b);
/* An object of that key. */
void bars_json(struct json *j, const char *key, const struct bars *b);

#endif
