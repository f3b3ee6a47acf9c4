/* SPDX-License-Identifier: BSD-3-Clause */
/* One page of `uroce top`, for people or as JSON. */
#ifndef APPS_TOP_PRINT_H
#define APPS_TOP_PRINT_H

#include <stdio.h>

#include "ranks.h"

/* The lines of a page beside the tables. */
struct summary_of_top {
	const struct reply_device *device;
	struct reply_statistics now, before;
	double seconds; /* between both; 0: there is no `before` */
};

/* `lines`: at most that many of each table; 0: all. */
void top_print(FILE *out, const struct summary_of_top *s, const struct ranks *r, uint32_t lines);
/* As many lines as fit a page of `height`. */
void top_print_page(FILE *out, const struct summary_of_top *s, const struct ranks *r,
		    uint32_t height);
void top_print_json(FILE *out, const struct summary_of_top *s, const struct ranks *r,
		    uint32_t lines);

#endif
