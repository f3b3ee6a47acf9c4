/* SPDX-License-Identifier: BSD-3-Clause */
#include "cycles.h"

#include <inttypes.h>

#include "base/bits.h"

uint64_t cycles_packets(const struct reply_cycles *r)
{
	return r->stage[STAGE_DECODE].passes + r->stage[STAGE_ENCODE].passes;
}

double cycles_in(const struct reply_cycles *r, enum stage s)
{
	double clock = (double)r->stage[s].passes * r->switch_cycles;

	return MAX_OF((double)r->stage[s].cycles - clock, 0.0);
}

double cycles_in_all(const struct reply_cycles *r)
{
	double sum = 0;

	for (enum stage s = 0; s < STAGE_COUNT; s++)
		sum += cycles_in(r, s);
	return sum;
}

double cycles_a_packet(const struct cycles_table *t, uint32_t column, enum stage s)
{
	const struct reply_cycles *r = t->of[column];
	double cycles = s == STAGE_COUNT ? cycles_in_all(r) : cycles_in(r, s);

	return cycles_packets(r) == 0 ? 0 : cycles / (double)cycles_packets(r);
}

double cycles_both_ends(const struct cycles_table *t, enum stage s)
{
	uint64_t packets = cycles_packets(t->of[0]) + cycles_packets(t->of[1]);
	double cycles = 0;

	for (uint32_t i = 0; i < 2; i++)
		cycles += s == STAGE_COUNT ? cycles_in_all(t->of[i]) : cycles_in(t->of[i], s);
	return packets == 0 ? 0 : 2 * cycles / (double)packets;
}

static void row(FILE *out, const struct cycles_table *t, enum stage s, const char *name,
		const char *what)
{
	fprintf(out, "%-10s", name);
	for (uint32_t i = 0; i < t->columns; i++)
		fprintf(out, " %10.1f", cycles_a_packet(t, i, s));
	if (t->columns == 2)
		fprintf(out, " %10.1f", cycles_both_ends(t, s));
	fprintf(out, "%s%s\n", what[0] != '\0' ? "  " : "", what);
}

void cycles_print(FILE *out, const struct cycles_table *t)
{
	fprintf(out, "%s\n%-10s", t->title, "stage");
	for (uint32_t i = 0; i < t->columns; i++)
		fprintf(out, " %10s", t->name[i]);
	fprintf(out, "%s\n", t->columns == 2 ? "       both" : "");
	for (enum stage s = 0; s < STAGE_COUNT; s++)
		row(out, t, s, stage_name(s), stage_what(s));
	row(out, t, STAGE_COUNT, "all", "");
	fprintf(out, "%-10s", "packets");
	for (uint32_t i = 0; i < t->columns; i++)
		fprintf(out, " %10" PRIu64, cycles_packets(t->of[i]));
	fprintf(out, "\n%-10s", "rounds");
	for (uint32_t i = 0; i < t->columns; i++)
		fprintf(out, " %10" PRIu64, t->of[i]->rounds);
	fprintf(out, "\n%-10s", "left out");
	for (uint32_t i = 0; i < t->columns; i++)
		fprintf(out, " %10" PRIu64, t->of[i]->interrupted_rounds);
	fprintf(out, "%s  rounds in which another thread had the processor",
		t->columns == 2 ? "           " : "");
	fprintf(out,
		"\nCycles of %.2f GHz; reading the clock takes about %u a switch, which are "
		"subtracted.\n",
		(double)t->of[0]->hz / 1e9, t->of[0]->switch_cycles);
}

void cycles_json(struct json *j, const char *key, const struct reply_cycles *r)
{
	uint64_t packets = cycles_packets(r);

	json_open(j, key, '{');
	json_integer(j, "hz", r->hz);
	json_integer(j, "rounds", r->rounds);
	json_integer(j, "idle_rounds", r->idle_rounds);
	json_integer(j, "idle_cycles", r->idle_cycles);
	json_integer(j, "interrupted_rounds", r->interrupted_rounds);
	json_integer(j, "interrupted_cycles", r->interrupted_cycles);
	json_integer(j, "packets", packets);
	json_integer(j, "switch_cycles", r->switch_cycles);
	json_open(j, "stages", '{');
	for (enum stage s = 0; s < STAGE_COUNT; s++) {
		json_open(j, stage_name(s), '{');
		json_integer(j, "cycles", r->stage[s].cycles);
		json_integer(j, "passes", r->stage[s].passes);
		json_number(j, "a_packet", packets == 0 ? 0 : cycles_in(r, s) / (double)packets);
		json_close(j, '}');
	}
	json_close(j, '}');
	json_close(j, '}');
}
