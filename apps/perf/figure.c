/* SPDX-License-Identifier: BSD-3-Clause */
#include "figure.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "base/bits.h"

#define WIDTH	 480.0
#define HEIGHT	 300.0
#define LEFT	 58.0 /* of the plot itself, and so on */
#define RIGHT	 458.0
#define TOP	 12.0
#define BOTTOM	 250.0
#define MARKS	 24u /* on an axis, at most */
#define LABELS_X 7u /* labels that have room below it */

struct series *figure_series(struct figure *f, const char *name, enum series_look look)
{
	struct series *s = &f->series[f->count++];

	assert(f->count <= FIGURE_SERIES && "a figure is written down in the source");
	*s = (struct series){ .name = name, .look = look };
	return s;
}

void series_point(struct series *s, double x, double y)
{
	assert(s->points < FIGURE_POINTS && "lists of points are written down in the source");
	s->x[s->points] = x;
	s->y[s->points++] = y;
}

const char *figure_class(const struct figure *f, uint32_t i)
{
	static const char *const own[] = { "c0", "c1", "c2", "c3" }, *const beside[] = { "beside",
											 "more" };
	enum series_look look = f->series[i].look;
	uint32_t number = 0;

	for (uint32_t k = 0; k < i; k++)
		number += f->series[k].look == look;
	if (look == LOOK_LIMIT)
		return "limit";
	return look == LOOK_OWN ? own[number % ARRAY_SIZE(own)]
				: beside[number % ARRAY_SIZE(beside)];
}

/* ---- numbers ---- */

static void binary_text(double value, const char *unit, char *text, size_t size)
{
	const char *prefix = value >= 1 << 20 ? "Mi" : value >= 1 << 10 ? "Ki" : "";
	double divide = value >= 1 << 20 ? 1 << 20 : value >= 1 << 10 ? 1 << 10 : 1;

	if (unit[0] != '\0')
		snprintf(text, size, "%.4g %s%s", value / divide, prefix, unit);
	else
		snprintf(text, size, "%.4g", value);
}

void axis_text(const struct axis *a, double value, char *text, size_t size)
{
	const char *space = a->unit[0] != '\0' ? " " : "";

	if (a->kind == AXIS_BINARY)
		binary_text(value, a->unit, text, size);
	else if (a->kind == AXIS_NINES || a->kind == AXIS_LIST)
		snprintf(text, size, "%.6g%s%s", value, space, a->unit);
	else
		snprintf(text, size, value >= 1000 ? "%.0f%s%s" : "%.3g%s%s", value, space,
			 a->unit);
}

/* ---- scales ---- */

/* From a value to a place in `from` .. `to`, which are places of `low` and `high`. */
struct scale {
	const struct axis *axis;
	double low, high; /* after bend() */
	double from, to;
	uint32_t marks;
	double mark[MARKS];
};

/* The value on a straight scale. */
static double bend(const struct scale *s, double v)
{
	switch (s->axis->kind) {
	case AXIS_BINARY:
		return log2(v);
	case AXIS_DECIMAL:
		return log10(v);
	case AXIS_NINES:
		return -log10(1 - v / 100);
	case AXIS_LIST:
		for (uint32_t i = 0; i < s->marks; i++)
			if (s->mark[i] == v)
				return i;
		return 0;
	default:
		return v;
	}
}

static double place(const struct scale *s, double v)
{
	double part = s->high > s->low ? (bend(s, v) - s->low) / (s->high - s->low) : 0.5;

	return s->from + part * (s->to - s->from);
}

static void mark(struct scale *s, double v)
{
	uint32_t i = s->marks;

	for (uint32_t k = 0; k < s->marks; k++)
		if (s->mark[k] == v)
			return;
	if (s->marks == MARKS)
		return;
	for (; i > 0 && s->mark[i - 1] > v; i--)
		s->mark[i] = s->mark[i - 1];
	s->mark[i] = v;
	s->marks++;
}

/* 1, 2 or 5 times a power of ten, so that about four steps reach `most`. */
static double round_step(double most)
{
	double power = pow(10, floor(log10(most / 4))), step = most / 4 / power;

	return (step > 5 ? 10 : step > 2 ? 5 : step > 1 ? 2 : 1) * power;
}

static void scale_linear(struct scale *s, double most)
{
	double step = round_step(most);

	s->low = 0;
	s->high = ceil(most / step) * step;
	for (uint32_t i = 0; i * step <= s->high * 1.0001; i++)
		mark(s, i * step);
}

static void scale_powers(struct scale *s, double least, double most)
{
	double base = s->axis->kind == AXIS_BINARY ? 2 : 10;

	s->low = floor(bend(s, least) + 1e-9);
	s->high = MAX_OF(ceil(bend(s, most) - 1e-9), s->low + 1);
	for (double e = s->low; e <= s->high; e++)
		mark(s, pow(base, e));
}

static void scale_nines(struct scale *s, double most)
{
	static const double nines[] = { 0, 50, 90, 99, 99.9, 99.99, 99.999 };

	s->low = 0;
	s->high = MAX_OF(bend(s, most), 1);
	for (uint32_t i = 0; i < ARRAY_SIZE(nines); i++)
		if (bend(s, nines[i]) <= s->high + 1e-9)
			mark(s, nines[i]);
}

/* All values of a figure on one axis. False: there are none that the axis can show. */
static bool scale_fit(struct scale *s, const struct figure *f, bool x)
{
	bool powers = s->axis->kind == AXIS_BINARY || s->axis->kind == AXIS_DECIMAL;
	double least = INFINITY, most = 0;

	for (uint32_t i = 0; i < f->count; i++)
		for (uint32_t k = 0; k < f->series[i].points; k++) {
			double v = x ? f->series[i].x[k] : f->series[i].y[k];

			if (s->axis->kind == AXIS_LIST)
				mark(s, v);
			if (powers && v <= 0)
				continue;
			least = MIN_OF(least, v);
			most = MAX_OF(most, v);
		}
	if (least > most || (most <= 0 && s->axis->kind != AXIS_LIST))
		return false;
	if (powers)
		scale_powers(s, least, most);
	else if (s->axis->kind == AXIS_NINES)
		scale_nines(s, most);
	else if (s->axis->kind == AXIS_FROM_ZERO)
		scale_linear(s, most);
	else
		s->high = s->marks - 1;
	return true;
}

/* ---- the drawing ---- */

static void marks_x(FILE *out, const struct scale *s)
{
	uint32_t every = (s->marks + LABELS_X - 1) / LABELS_X;
	char text[32];

	for (uint32_t i = 0; i < s->marks; i++) {
		double x = place(s, s->mark[i]);

		fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\"/>\n",
			x, x, TOP, BOTTOM);
		if (i % every != 0)
			continue;
		axis_text(s->axis, s->mark[i], text, sizeof(text));
		fprintf(out, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n", x,
			BOTTOM + 16, text);
	}
	fprintf(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
		(LEFT + RIGHT) / 2, BOTTOM + 36, s->axis->title);
}

static void marks_y(FILE *out, const struct scale *s)
{
	struct axis bare = *s->axis;
	char text[32];

	bare.unit = ""; /* the title has it */
	for (uint32_t i = 0; i < s->marks; i++) {
		double y = place(s, s->mark[i]);

		axis_text(&bare, s->mark[i], text, sizeof(text));
		fprintf(out,
			"<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>\n"
			"<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			LEFT, RIGHT, y, y, LEFT - 6, y + 4, text);
	}
	fprintf(out,
		"<text transform=\"translate(13 %g) rotate(-90)\" text-anchor=\"middle\">%s, "
		"%s</text>\n",
		(TOP + BOTTOM) / 2, s->axis->title, s->axis->unit);
}

static bool shown(const struct scale *y, double v)
{
	return v > 0 || y->axis->kind != AXIS_DECIMAL;
}

static void draw_series(FILE *out, const struct figure *f, uint32_t i, const struct scale *x,
			const struct scale *y)
{
	const struct series *s = &f->series[i];
	char at[32], value[32];

	fprintf(out, "<polyline class=\"%s\" points=\"", figure_class(f, i));
	for (uint32_t k = 0; k < s->points; k++)
		if (shown(y, s->y[k]))
			fprintf(out, "%.1f,%.1f ", place(x, s->x[k]), place(y, s->y[k]));
	fputs("\"/>\n", out);
	for (uint32_t k = 0; k < s->points; k++) {
		if (!shown(y, s->y[k]))
			continue;
		axis_text(&f->x, s->x[k], at, sizeof(at));
		axis_text(&f->y, s->y[k], value, sizeof(value));
		fprintf(out,
			"<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s, %s: "
			"%s</title></circle>\n",
			figure_class(f, i), place(x, s->x[k]), place(y, s->y[k]), s->name, at,
			value);
	}
}

void figure_svg(FILE *out, const struct figure *f)
{
	struct scale x = { .axis = &f->x, .from = LEFT, .to = RIGHT };
	struct scale y = { .axis = &f->y, .from = BOTTOM, .to = TOP };

	fprintf(out, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", WIDTH, HEIGHT,
		f->title);
	if (scale_fit(&x, f, true) && scale_fit(&y, f, false)) {
		marks_x(out, &x);
		marks_y(out, &y);
		for (uint32_t i = 0; i < f->count; i++)
			draw_series(out, f, i, &x, &y);
	}
	fputs("</svg>\n", out);
}
