/* SPDX-License-Identifier: BSD-3-Clause */
/* `uroce perf`: options, limits, figures, and their report as text or JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "base/bits.h"
#include "json.h"
#include "measure.h"
#include "output.h"
#include "perf.h"
#include "report.h"
#include "stages.h"
#include "wire.h"

/* The fraction of the limit that was reached: of what messages of this size reach without an engine. */
static double ratio(const struct load_result *r, const struct limit_result *l)
{
	double limit = limits_messages(l, r->size);

	return limit > 0 ? (double)r->messages / r->seconds / limit : 0;
}

static void load_text(const struct load_result *r, const struct limit_result *l)
{
	flaws_text(&r->flaws);
	printf("%-7s %9u %6u %11.4f %11.3f %8.3f %%", operation_name[r->operation], r->size, r->qps,
	       (double)r->messages / r->seconds / 1e6, (double)r->octets * 8 / r->seconds / 1e9,
	       100 * r->again);
	if (l->raw_full_bits > 0)
		printf(" %9.1f %%", 100 * ratio(r, l));
	putchar('\n');
}

static void load_json(struct json *j, const struct load_result *r, const struct limit_result *l,
		      const struct stages_result *stages)
{
	json_open(j, NULL, '{');
	json_string(j, "operation", operation_name[r->operation]);
	json_integer(j, "size", r->size);
	json_integer(j, "qps", r->qps);
	flaws_json(j, &r->flaws);
	json_number(j, "sent_again", r->again);
	json_number(j, "seconds", r->seconds);
	json_integer(j, "messages", r->messages);
	json_number(j, "messages_per_s", (double)r->messages / r->seconds);
	json_number(j, "bit_per_s", (double)r->octets * 8 / r->seconds);
	if (l->raw_full_bits > 0)
		json_number(j, "ratio_to_limit", ratio(r, l));
	if (stages != NULL) {
		json_open(j, "cycles", '{');
		cycles_json(j, "asks", &stages->a);
		cycles_json(j, "answers", &stages->b);
		json_close(j, '}');
	}
	json_close(j, '}');
}

/* Tables of cycles, which stand below the rates. */
struct tables {
	char *text;
	size_t size;
	FILE *out; /* NULL: none are wanted */
};

static void tables_add(struct tables *tables, const struct load_result *r,
		       const struct stages_result *stages)
{
	struct cycles_table t = stages_table(stages);
	char title[96];

	snprintf(title, sizeof(title), "cycles a packet: %s, %u octets, %u queue pairs",
		 operation_name[r->operation], r->size, r->qps);
	t.title = title;
	fputc('\n', tables->out);
	cycles_print(tables->out, &t);
}

static void tables_print(struct tables *t)
{
	if (t->out == NULL)
		return;
	fclose(t->out);
	fputs(t->text, stdout);
	free(t->text);
}

/* At each loss, each part of the frames that is overtaken. */
static uint32_t wires(const struct perf_options *o)
{
	return MAX_OF(o->losses, 1) * MAX_OF(o->reorders, 1);
}

/* Makes the wire number i of them. */
static int impair(struct perf_pair *p, uint32_t i, struct perf_flaws *f)
{
	const struct perf_options *o = p->options;
	uint32_t reorders = MAX_OF(o->reorders, 1);

	f->loss = o->losses > 0 ? o->loss[i / reorders] : -1;
	f->reordered = o->reorders > 0 ? o->reorder[i % reorders] : -1;
	if (o->losses == 0)
		return 0;
	return pair_impair(p, f->loss / 100, MAX_OF(f->reordered, 0) / 100);
}

static int load(struct perf_pair *p, enum perf_operation op, uint32_t size,
		const struct perf_flaws *flaws, const struct limit_result *l, struct json *j,
		struct tables *tables)
{
	const struct perf_options *o = p->options;
	static struct stages_result stages;
	struct load_result r;
	int failed;

	for (uint32_t i = 0; i < o->qps_count; i++) {
		failed = o->cycles ? stages_load(p, op, size, o->qps_of[i], &r, &stages)
				   : load_run(p, op, size, o->qps_of[i], &r);
		if (failed)
			return 1;
		r.flaws = *flaws;
		if (o->json)
			load_json(j, &r, l, o->cycles ? &stages : NULL);
		else
			load_text(&r, l);
		if (tables->out != NULL)
			tables_add(tables, &r, &stages);
		fflush(stdout);
	}
	return 0;
}

/* One operation and size on each wire. */
static int load_wires(struct perf_pair *p, enum perf_operation op, uint32_t size,
		      const struct limit_result *l, struct json *j, struct tables *tables)
{
	struct perf_flaws flaws;

	for (uint32_t i = 0; i < wires(p->options); i++)
		if (impair(p, i, &flaws) != 0 || load(p, op, size, &flaws, l, j, tables) != 0)
			return 1;
	return 0;
}

static int loads(struct perf_pair *p, const struct limit_result *l, struct json *j)
{
	const struct perf_options *o = p->options;
	struct tables tables = { .out = NULL };

	if (o->cycles && !o->json)
		tables.out = open_memstream(&tables.text, &tables.size);
	if (o->json) {
		json_open(j, "rates", '[');
	} else {
		flaws_head(o);
		puts("op           octets    qps  M message/s      Gbit/s      again   of limit");
	}
	for (uint32_t op = 0; op < PERF_OPERATIONS; op++) {
		for (uint32_t s = 0; o->operation[op] && s < o->sizes; s++) {
			if (op == PERF_ATOMIC && s > 0)
				break;
			if (load_wires(p, op, op == PERF_ATOMIC ? 8 : o->size[s], l, j, &tables) !=
			    0)
				return 1;
		}
	}
	if (o->json)
		json_close(j, ']');
	tables_print(&tables);
	return 0;
}

static int latencies(struct perf_pair *p, struct json *j)
{
	const struct perf_options *o = p->options;
	static struct histogram h;

	if (o->json)
		json_open(j, "half_round_trips", '[');
	else
		latency_head(o);
	for (uint32_t i = 0; i < wires(o); i++) {
		struct perf_flaws flaws;

		if (impair(p, i, &flaws) != 0)
			return 1;
		for (uint32_t s = 0; s < o->sizes; s++) {
			if (latency_run(p, o->size[s], &h) != 0)
				return 1;
			if (o->json)
				latency_json(j, o->size[s], &flaws, &h);
			else
				latency_text(o->size[s], &flaws, &h);
		}
	}
	if (o->json)
		json_close(j, ']');
	return 0;
}

static int run(int argc, char **argv)
{
	struct perf_options o;
	struct perf_pair p;
	struct limit_result l = { 0 };
	struct json j = { .out = stdout };
	int failed;

	if (!perf_options_parse(&o, argc, argv, &failed))
		return failed;
	if (o.server)
		return wire_server(&o);
	if (o.peer != NULL)
		return wire_client(&o);
	if (o.report != NULL)
		return measure_report(&o);
	if (pair_eal(&o) != 0 || (o.limits && limits_run(&o, &l) != 0) ||
	    pair_open(&p, "perf", o.losses > 0, &o) != 0)
		return 1;
	if (o.json) {
		json_open(&j, NULL, '{');
		json_string(&j, "placement", placement_name[o.placement]);
		json_integer(&j, "qps", o.qps);
		json_integer(&j, "depth", o.depth);
		json_integer(&j, "post", o.post);
		json_integer(&j, "mtu", o.mtu);
		if (o.limits)
			limits_json(&j, &l);
	} else if (o.limits) {
		limits_text(&l);
	}
	failed = o.latency ? latencies(&p, &j) : loads(&p, &l, &j);
	if (o.json && !failed)
		json_close(&j, '}');
	pair_close(&p);
	return failed;
}

int main(int argc, char **argv)
{
	int status;

	output_keep_closed();
	status = run(argc, argv);
	return status != 0 ? status : output_status("uroce perf");
}
