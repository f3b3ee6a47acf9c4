/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdio.h>

#include "base/bits.h"
#include "plot.h"
#include "topology.h"

#define WIDTH  900
#define HEIGHT 200 /* of one panel */
#define LEFT   90
#define TOP    50
#define GAP    50
#define PANELS 3

/* One panel: the number of its value in a sample, its unit, and a horizontal reference line. */
struct panel {
	const char *title, *unit;
	size_t offset; /* of a double in a sample */
	double divide;
	double mark, mark_too; /* 0: none */
};

void plot_sample(struct plot *p, const struct net *n, nanotime now)
{
	double before = p->samples > 0 ? p->sample[p->samples - 1].at : 0;
	uint64_t octets = n->bottleneck->counts.octets;
	double window = 0;

	if (p->samples == PLOT_SAMPLES || (double)now <= before)
		return;
	for (uint32_t i = 0; i < n->transfers; i++)
		window += endpoint_window(n->transfer[i].out);
	p->sample[p->samples].at = (double)now;
	p->sample[p->samples].rate = (double)(octets - p->octets) * 8e9 / ((double)now - before);
	p->sample[p->samples].queue = (double)n->bottleneck->octets;
	p->sample[p->samples].window = window / n->transfers;
	p->octets = octets;
	p->samples++;
}

static double value(const struct plot *p, const struct panel *panel, unsigned int i)
{
	return *(const double *)(const void *)((const char *)&p->sample[i] + panel->offset) /
	       panel->divide;
}

static void level(FILE *out, const struct panel *panel, double mark, double most, int y,
		  const char *colour)
{
	double at = y + HEIGHT - mark / panel->divide / most * HEIGHT;

	if (mark > 0 && mark / panel->divide <= most)
		fprintf(out,
			"<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
			"stroke-dasharray=\"4 4\"/>\n",
			LEFT, LEFT + WIDTH, at, at, colour);
}

static void panel_write(FILE *out, const struct plot *p, const struct panel *panel, int number)
{
	int y = TOP + number * (HEIGHT + GAP);
	double most = 0, end = p->sample[p->samples - 1].at;

	for (unsigned int i = 0; i < p->samples; i++)
		most = MAX_OF(most, value(p, panel, i));
	most = most > 0 ? most * 1.05 : 1;
	fprintf(out,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
		"stroke=\"#888\"/>\n<text x=\"%d\" y=\"%d\">%s, %s</text>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3g</text>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n",
		LEFT, y, WIDTH, HEIGHT, LEFT, y - 8, panel->title, panel->unit, LEFT - 6, y + 12,
		most, LEFT - 6, y + HEIGHT);
	level(out, panel, panel->mark, most, y, "#c00");
	level(out, panel, panel->mark_too, most, y, "#0a0");
	fprintf(out, "<polyline fill=\"none\" stroke=\"#04c\" points=\"");
	for (unsigned int i = 0; i < p->samples; i++)
		fprintf(out, "%.1f,%.1f ", LEFT + p->sample[i].at / end * WIDTH,
			y + HEIGHT - value(p, panel, i) / most * HEIGHT);
	fprintf(out, "\"/>\n");
}

static void body_write(FILE *out, const struct plot *p, const struct scenario_config *c)
{
	const struct panel panel[PANELS] = {
		{ "rate of the bottleneck", "Gbit/s", offsetof(struct plot_sample, rate), 1e9,
		  c->rate, 0 },
		{ "queue in front of it (red: buffer, green: marks)", "KiB",
		  offsetof(struct plot_sample, queue), 1024, c->buffer, c->ecn },
		{ "window of a queue pair, on average", "KiB", offsetof(struct plot_sample, window),
		  1024, 0, 0 },
	};
	int height = TOP + PANELS * (HEIGHT + GAP);

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"13\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"20\">%s, %s: %u senders, %u queue pairs each, messages of %u "
		"octets, seed %llu</text>\n",
		LEFT + WIDTH + 20, height, LEFT, scenario_name(c->scenario),
		scenario_peers_name(c->peers), c->senders, c->qps, c->size,
		(unsigned long long)c->seed);
	for (int i = 0; i < PANELS && p->samples > 0; i++)
		panel_write(out, p, &panel[i], i);
	if (p->samples > 0)
		fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3f ms</text>\n",
			LEFT + WIDTH, height - GAP + 18, p->sample[p->samples - 1].at / 1e6);
	fprintf(out, "</svg>\n");
}

bool plot_write(const struct plot *p, const struct scenario_config *c, const char *path)
{
	FILE *out = fopen(path, "w");
	bool ok;

	if (out == NULL)
		return false;
	body_write(out, p, c);
	ok = ferror(out) == 0;
	return fclose(out) == 0 && ok;
}
