/* SPDX-License-Identifier: BSD-3-Clause */
#include "page.h"

#include <assert.h>

#include "json.h"

static const char head[] =
	"<!DOCTYPE html>\n"
	"<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
	"<title>uroce perf</title>\n<style>\n"
	":root { color-scheme: light dark; --page: #fcfcfb; --ink: #1d1d1b; --dim: #5c5c58;\n"
	"  --grid: #e2e2de; --c0: #2a6fc9; --c1: #0f8a5f; --c2: #c2571a; --c3: #8a4fc0;\n"
	"  --beside: #b3247a; --more: #7a6a00; }\n"
	"@media (prefers-color-scheme: dark) { :root { --page: #191918; --ink: #f0efec;\n"
	"  --dim: #a9a8a2; --grid: #343432; --c0: #62a0f0; --c1: #35bd8a; --c2: #ee8a4c;\n"
	"  --c3: #b98af0; --beside: #ee6db5; --more: #d0b93f; } }\n"
	"body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--page);\n"
	"  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }\n"
	"h1 { font-size: 1.5rem; margin: 0; }\n"
	"h2 { font-size: 1.1rem; margin: 0; }\n"
	"p { margin: 0.3rem 0; }\n"
	".dim { color: var(--dim); overflow-wrap: anywhere; }\n"
	"main { display: grid; gap: 2rem; margin-top: 1.5rem;\n"
	"  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }\n"
	"figure { margin: 0; min-width: 0; }\n"
	"svg { display: block; width: 100%; height: auto; }\n"
	"svg text { fill: var(--dim); font-size: 12px; }\n"
	".grid { stroke: var(--grid); }\n"
	"polyline { fill: none; stroke-width: 2; stroke: currentColor; }\n"
	"circle { fill: currentColor; }\n"
	".c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); }\n"
	".c3 { color: var(--c3); } .limit { color: var(--dim); } .beside { color: var(--beside); }\n"
	".more { color: var(--more); }\n"
	"polyline.limit { stroke-dasharray: 6 4; } polyline.beside,\n"
	"polyline.more { stroke-dasharray: 2 3; }\n"
	"ul { display: flex; flex-wrap: wrap; gap: 0 1.2rem; margin: 0.3rem 0; padding: 0;\n"
	"  list-style: none; font-size: 0.9rem; }\n"
	"li::before { content: ''; display: inline-block; width: 1.3rem; margin-right: 0.4rem;\n"
	"  vertical-align: middle; border-top: 3px solid; }\n"
	"li.limit::before { border-top-style: dashed; }\n"
	"li.beside::before, li.more::before { border-top-style: dotted; }\n"
	"li span { color: var(--ink); }\n"
	"details { font-size: 0.9rem; } .wide { overflow-x: auto; }\n"
	"table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n"
	"th, td { padding: 0.15rem 0.6rem; text-align: right; border-bottom: 1px solid var(--grid); }\n"
	"th { font-weight: 600; }\n"
	"</style>\n</head>\n<body>\n";

struct figure *page_figure(struct page *p)
{
	assert(p->count < PAGE_FIGURES && "figures are written down in the source");
	return &p->figure[p->count++];
}

/* Text of the machine may have any characters. */
static void escape(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else if ((unsigned char)*text >= ' ' && (unsigned char)*text < 0x7f)
			putc(*text, out);
	}
}

static void paragraph(FILE *out, const char *class, const char *text)
{
	fprintf(out, "<p class=\"%s\">", class);
	escape(out, text);
	fputs("</p>\n", out);
}

static void legend(FILE *out, const struct figure *f)
{
	fputs("<ul>\n", out);
	for (uint32_t i = 0; i < f->count; i++)
		fprintf(out, "<li class=\"%s\"><span>%s</span></li>\n", figure_class(f, i),
			f->series[i].name);
	fputs("</ul>\n", out);
}

/* The value of a series at x; false: the series has no point there. */
static bool value_at(const struct series *s, double x, double *y)
{
	for (uint32_t i = 0; i < s->points; i++)
		if (s->x[i] == x) {
			*y = s->y[i];
			return true;
		}
	return false;
}

static const struct series *longest(const struct figure *f)
{
	const struct series *most = &f->series[0];

	for (uint32_t i = 1; i < f->count; i++)
		if (f->series[i].points > most->points)
			most = &f->series[i];
	return most;
}

static void row(FILE *out, const struct figure *f, double x)
{
	struct axis bare = f->y;
	char text[32];
	double y;

	bare.unit = "";
	axis_text(&f->x, x, text, sizeof(text));
	fprintf(out, "<tr><th>%s</th>", text);
	for (uint32_t i = 0; i < f->count; i++) {
		text[0] = '\0';
		if (value_at(&f->series[i], x, &y))
			axis_text(&bare, y, text, sizeof(text));
		fprintf(out, "<td>%s</td>", text);
	}
	fputs("</tr>\n", out);
}

static void table(FILE *out, const struct figure *f)
{
	const struct series *all = longest(f);

	fprintf(out,
		"<details><summary>Numbers</summary><div class=\"wide\"><table>\n"
		"<tr><th>%s</th>",
		f->x.title);
	for (uint32_t i = 0; i < f->count; i++)
		fprintf(out, "<th>%s, %s</th>", f->series[i].name, f->y.unit);
	fputs("</tr>\n", out);
	for (uint32_t i = 0; i < all->points; i++)
		row(out, f, all->x[i]);
	fputs("</table></div></details>\n", out);
}

void page_write(FILE *out, const struct page *p)
{
	fputs(head, out);
	fputs("<h1>uroce perf</h1>\n", out);
	paragraph(out, "dim", p->date);
	paragraph(out, "dim", p->machine);
	paragraph(out, "dim", p->settings);
	if (p->missing[0] != '\0')
		paragraph(out, "dim", p->missing);
	fputs("<main>\n", out);
	for (uint32_t i = 0; i < p->count; i++) {
		const struct figure *f = &p->figure[i];

		fprintf(out, "<figure id=\"%s\">\n<h2>%s</h2>\n", f->id, f->title);
		legend(out, f);
		figure_svg(out, f);
		fputs("<figcaption>\n", out);
		paragraph(out, "dim", f->note);
		table(out, f);
		fputs("</figcaption>\n</figure>\n", out);
	}
	bars_write(out, &p->cycles);
	fputs("</main>\n</body>\n</html>\n", out);
}

static void series_json(struct json *j, const struct series *s)
{
	static const char *const looks[] = { "uroce", "limit", "beside" };

	json_open(j, NULL, '{');
	json_string(j, "name", s->name);
	json_string(j, "kind", looks[s->look]);
	json_open(j, "points", '[');
	for (uint32_t i = 0; i < s->points; i++) {
		json_open(j, NULL, '[');
		json_number(j, NULL, s->x[i]);
		json_number(j, NULL, s->y[i]);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_close(j, '}');
}

void page_json(FILE *out, const struct page *p)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "date", p->date);
	json_string(&j, "machine", p->machine);
	json_string(&j, "settings", p->settings);
	json_string(&j, "missing", p->missing);
	json_open(&j, "figures", '[');
	for (uint32_t i = 0; i < p->count; i++) {
		const struct figure *f = &p->figure[i];

		json_open(&j, NULL, '{');
		json_string(&j, "id", f->id);
		json_string(&j, "x", f->x.title);
		json_string(&j, "y", f->y.title);
		json_string(&j, "unit", f->y.unit);
		json_open(&j, "series", '[');
		for (uint32_t k = 0; k < f->count; k++)
			series_json(&j, &f->series[k]);
		json_close(&j, ']');
		json_close(&j, '}');
	}
	json_close(&j, ']');
	bars_json(&j, "cycles", &p->cycles);
	json_close(&j, '}');
}
