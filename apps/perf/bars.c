/* SPDX-License-Identifier: BSD-3-Clause */
#include "bars.h"

#include "base/bits.h"
#include "json.h"

#define WIDTH  480.0
#define LEFT   82.0 /* of the bars */
#define RIGHT  430.0 /* of the longest: a number stands behind it */
#define THICK  8.0
#define GAP    7.0 /* between groups */
#define TOP    4.0
#define BOTTOM 4.0

static double longest(const struct bars *b)
{
	double most = 1;

	for (uint32_t i = 0; i < b->loads; i++)
		for (enum stage s = 0; s < STAGE_COUNT; s++)
			most = MAX_OF(most, b->load[i].cycles[s]);
	return most;
}

static void group(FILE *out, const struct bars *b, enum stage s, double y, double scale)
{
	fprintf(out, "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 8,
		y + b->loads * THICK / 2 + 4, stage_name(s));
	for (uint32_t i = 0; i < b->loads; i++) {
		double cycles = b->load[i].cycles[s], width = cycles * scale;

		fprintf(out,
			"<rect class=\"c%u\" fill=\"currentColor\" x=\"%g\" y=\"%.1f\" "
			"width=\"%.1f\" height=\"%g\"><title>%s, %s: %.1f</title></rect>\n",
			i, LEFT, y + i * THICK, width, THICK - 1, stage_name(s), b->load[i].name,
			cycles);
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" style=\"font-size: 8px\">%.0f</text>\n",
			LEFT + width + 3, y + (i + 1) * THICK - 2, cycles);
	}
}

static void svg(FILE *out, const struct bars *b)
{
	double step = b->loads * THICK + GAP, scale = (RIGHT - LEFT) / longest(b);

	fprintf(out, "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"Cycles by stage\">\n",
		WIDTH, TOP + STAGE_COUNT * step - GAP + BOTTOM);
	for (enum stage s = 0; s < STAGE_COUNT; s++)
		group(out, b, s, TOP + s * step, scale);
	fputs("</svg>\n", out);
}

static void legend(FILE *out, const struct bars *b)
{
	fputs("<ul>\n", out);
	for (uint32_t i = 0; i < b->loads; i++)
		fprintf(out, "<li class=\"c%u\"><span>%s: %.0f (limit %.0f)</span></li>\n", i,
			b->load[i].name, b->load[i].all, b->load[i].limit);
	fputs("</ul>\n", out);
}

static void table(FILE *out, const struct bars *b)
{
	fputs("<details><summary>Numbers</summary><div class=\"wide\"><table>\n<tr><th>stage</th>",
	      out);
	for (uint32_t i = 0; i < b->loads; i++)
		fprintf(out, "<th>%s</th>", b->load[i].name);
	fputs("</tr>\n", out);
	for (enum stage s = 0; s < STAGE_COUNT; s++) {
		fprintf(out, "<tr><th title=\"%s\">%s</th>", stage_what(s), stage_name(s));
		for (uint32_t i = 0; i < b->loads; i++)
			fprintf(out, "<td>%.1f</td>", b->load[i].cycles[s]);
		fputs("</tr>\n", out);
	}
	fputs("</table></div></details>\n", out);
}

void bars_write(FILE *out, const struct bars *b)
{
	if (b->loads == 0)
		return;
	fputs("<figure id=\"cycles\">\n<h2>Cycles a packet by stage</h2>\n", out);
	legend(out, b);
	svg(out, b);
	fputs("<figcaption>\n<p class=\"dim\">The cycles of a packet at the end that makes it and at "
	      "the end that receives it together, acknowledgements included. The program's own "
	      "calls are not included. Limit: a frame of that size, 4 KiB at most, on one core, "
	      "copied and summed at both ends, without an engine. The limit is computed from a "
	      "rate, so other threads on that core make it larger.</p>\n",
	      out);
	table(out, b);
	fputs("</figcaption>\n</figure>\n", out);
}

void bars_json(struct json *j, const char *key, const struct bars *b)
{
	json_open(j, key, '[');
	for (uint32_t i = 0; i < b->loads; i++) {
		json_open(j, NULL, '{');
		json_string(j, "name", b->load[i].name);
		json_number(j, "all", b->load[i].all);
		json_number(j, "limit", b->load[i].limit);
		json_open(j, "stages", '{');
		for (enum stage s = 0; s < STAGE_COUNT; s++)
			json_number(j, stage_name(s), b->load[i].cycles[s]);
		json_close(j, '}');
		json_close(j, '}');
	}
	json_close(j, ']');
}
