/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of `uroce perf --report`: figures, their numbers as tables, and the machine. */
#ifndef APPS_PERF_PAGE_H
#define APPS_PERF_PAGE_H

#include "bars.h"
#include "figure.h"

#define PAGE_FIGURES 6u

struct page {
	char machine[512]; /* processor, kernel */
	char settings[256]; /* what was chosen, in words */
	char missing[512]; /* what was not measured and why; "": nothing */
	char date[40];
	uint32_t count;
	struct figure figure[PAGE_FIGURES];
	struct bars cycles; /* behind the figures */
};

struct figure *page_figure(struct page *p);
/* One file that needs no other: HTML that is well-formed XML, too. */
void page_write(FILE *out, const struct page *p);
/* The same numbers for other programs. */
void page_json(FILE *out, const struct page *p);

#endif
