/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A figure of `uroce perf --report`: series of points over two axes. figure_svg() draws it, page.h puts
 * it on a page.
 */
#ifndef APPS_PERF_FIGURE_H
#define APPS_PERF_FIGURE_H

#include <stdint.h>
#include <stdio.h>

#define FIGURE_SERIES 6u
#define FIGURE_POINTS 24u

enum axis_kind {
	AXIS_FROM_ZERO,
	AXIS_BINARY, /* logarithmic, marked at powers of two */
	AXIS_DECIMAL, /* logarithmic, marked at powers of ten */
	AXIS_NINES, /* percentiles: 90, 99, 99.9 are equally far apart */
	AXIS_LIST, /* the values themselves, equally far apart */
};

struct axis {
	enum axis_kind kind;
	const char *title;
	const char *unit; /* behind a number; "": none */
};

enum series_look {
	LOOK_OWN, /* what was measured of uroce */
	LOOK_LIMIT, /* what it cannot exceed */
	LOOK_BESIDE, /* what another one does */
};

struct series {
	const char *name;
	enum series_look look;
	uint32_t points;
	double x[FIGURE_POINTS], y[FIGURE_POINTS];
};

struct figure {
	const char *id, *title;
	const char *note; /* what it shows, in sentences */
	struct axis x, y;
	uint32_t count;
	struct series series[FIGURE_SERIES];
};

/* The next series, still without points. */
struct series *figure_series(struct figure *f, const char *name, enum series_look look);
void series_point(struct series *s, double x, double y);

/* An <svg> of the figure. Its colours are classes, which the page has. */
void figure_svg(FILE *out, const struct figure *f);
/* The class of series number i: c0, c1 ... of uroce's own, limit, beside and more. */
const char *figure_class(const struct figure *f, uint32_t i);
/* "64 KiB", "99.9 %", "0.12": a value as it stands on this axis and in tables. */
void axis_text(const struct axis *a, double value, char *text, size_t size);

#endif
