/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of a report: positions of points, marks on an axis, texts of numbers. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "page.h"

/* The text that a function writes. The caller frees it. */
static char *written(void (*write)(FILE *out, const void *what), const void *what)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	write(out, what);
	fclose(out);
	return text;
}

static void write_svg(FILE *out, const void *f)
{
	figure_svg(out, f);
}

static void write_html(FILE *out, const void *p)
{
	page_write(out, p);
}

static void write_json(FILE *out, const void *p)
{
	page_json(out, p);
}

/* How often the text occurs. */
static uint32_t times(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)) != NULL; text += strlen(what))
		n++;
	return n;
}

static void expect_text(enum axis_kind kind, const char *unit, double value, const char *wanted)
{
	struct axis a = { kind, "", unit };
	char text[32];

	axis_text(&a, value, text, sizeof(text));
	cr_expect_str_eq(text, wanted);
}

Test(figure, numbers_read_as_people_write_them)
{
	expect_text(AXIS_BINARY, "B", 8, "8 B");
	expect_text(AXIS_BINARY, "B", 65536, "64 KiB");
	expect_text(AXIS_BINARY, "B", 1 << 20, "1 MiB");
	expect_text(AXIS_BINARY, "", 512, "512");
	expect_text(AXIS_NINES, "%", 99.999, "99.999 %");
	expect_text(AXIS_LIST, "%", 0.1, "0.1 %");
	expect_text(AXIS_FROM_ZERO, "M/s", 4.25, "4.25 M/s");
	expect_text(AXIS_DECIMAL, "us", 123456, "123456 us");
}

/* The plot goes from (58, 250) to (458, 12). */
Test(figure, points_are_where_their_values_are)
{
	struct figure f = { .id = "f",
			    .title = "f",
			    .x = { AXIS_BINARY, "size", "B" },
			    .y = { AXIS_DECIMAL, "rate", "Gbit/s" } };
	struct series *s = figure_series(&f, "own", LOOK_OWN);
	char *text;

	series_point(s, 1, 0.01);
	series_point(s, 4, 1);
	series_point(s, 16, 100);
	text = written(write_svg, &f);
	cr_expect_not_null(strstr(text, "points=\"58.0,250.0 258.0,131.0 458.0,12.0 \""), "%s",
			   text);
	cr_expect_eq(times(text, "<circle"), 3);
	cr_expect_not_null(strstr(text, "<title>own, 4 B: 1 Gbit/s</title>"));
	free(text);
}

Test(figure, nines_are_equally_far_apart)
{
	struct figure f = { .x = { AXIS_NINES, "percentile", "%" },
			    .y = { AXIS_FROM_ZERO, "time", "us" } };
	struct series *s = figure_series(&f, "own", LOOK_OWN);
	char *text;

	series_point(s, 0, 0);
	series_point(s, 90, 1);
	series_point(s, 99, 2);
	text = written(write_svg, &f);
	cr_expect_not_null(strstr(text, "points=\"58.0,250.0 258.0,131.0 458.0,12.0 \""), "%s",
			   text);
	cr_expect_eq(times(text, ">99 %</text>"), 1);
	cr_expect_eq(times(text, ">99.9 %</text>"), 0, "there was nothing");
	free(text);
}

/* A limit that is alone has no height; values that a logarithmic axis cannot show are left out. */
Test(figure, odd_values)
{
	struct figure f = { .x = { AXIS_LIST, "loss", "%" }, .y = { AXIS_DECIMAL, "time", "us" } };
	struct series *s;
	char *text;

	text = written(write_svg, &f);
	cr_expect_eq(times(text, "polyline"), 0, "no series");
	free(text);
	s = figure_series(&f, "limit", LOOK_LIMIT);
	text = written(write_svg, &f);
	cr_expect_eq(times(text, "polyline"), 0, "no points");
	free(text);
	series_point(s, 5, 3);
	series_point(s, 10, 0);
	text = written(write_svg, &f);
	cr_expect_eq(times(text, "<circle class=\"limit\""), 1, "%s", text);
	cr_expect_eq(times(text, "nan") + times(text, "inf"), 0, "%s", text);
	free(text);
}

static struct page page;

static void fill(void)
{
	struct figure *f = page_figure(&page);
	struct series *s;

	*f = (struct figure){ .id = "one",
			      .title = "One",
			      .note = "A <note> & more",
			      .x = { AXIS_LIST, "x", "" },
			      .y = { AXIS_FROM_ZERO, "y", "M/s" } };
	s = figure_series(f, "uroce", LOOK_OWN);
	series_point(s, 1, 2);
	series_point(s, 2, 4);
	series_point(figure_series(f, "limit", LOOK_LIMIT), 2, 8);
	series_point(figure_series(f, "more", LOOK_OWN), 1, 3);
	strcpy(page.machine, "a \"<processor>\" \x01\xff");
}

TestSuite(page, .init = fill);

Test(page, text_of_the_machine_is_escaped)
{
	char *text = written(write_html, &page);

	cr_expect_not_null(strstr(text, ">a \"&lt;processor>\" </p>"));
	cr_expect_not_null(strstr(text, ">A &lt;note> &amp; more</p>"));
	free(text);
}

Test(page, a_table_has_each_number_in_its_place)
{
	char *text = written(write_html, &page);

	cr_expect_not_null(strstr(text, "<tr><th>x</th><th>uroce, M/s</th><th>limit, M/s</th>"
					"<th>more, M/s</th></tr>\n"
					"<tr><th>1</th><td>2</td><td></td><td>3</td></tr>\n"
					"<tr><th>2</th><td>4</td><td>8</td><td></td></tr>\n"));
	cr_expect_eq(times(text, "<li class=\"c1\">"), 1, "the second of uroce's own");
	cr_expect_eq(times(text, "<li class=\"limit\">"), 1);
	free(text);
}

Test(page, each_series_beside_has_a_look_of_its_own)
{
	struct figure f = { .x = { AXIS_LIST, "x", "" }, .y = { AXIS_DECIMAL, "y", "" } };

	figure_series(&f, "TCP", LOOK_BESIDE);
	figure_series(&f, "own", LOOK_OWN);
	figure_series(&f, "UCX", LOOK_BESIDE);
	cr_expect_str_eq(figure_class(&f, 0), "beside");
	cr_expect_str_eq(figure_class(&f, 1), "c0");
	cr_expect_str_eq(figure_class(&f, 2), "more");
}

Test(page, json_has_the_same_numbers)
{
	char *text = written(write_json, &page);

	cr_expect_not_null(strstr(text, "{\"name\": \"uroce\", \"kind\": \"uroce\", "
					"\"points\": [[1, 2], [2, 4]]}"),
			   "%s", text);
	cr_expect_not_null(strstr(text, "\"kind\": \"limit\", \"points\": [[2, 8]]"));
	free(text);
}
