/* SPDX-License-Identifier: BSD-3-Clause */
/* `uroce perf`: options, limits, figures, and their report as text or JSON. */
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>

#include "base/bits.h"
#include "json.h"
#include "perf.h"

static const char *const placement_name[] = { "one", "two", "apart" };
static const double percentiles[] = { 50, 90, 99, 99.9, 100 };

static void limits_text(const struct limit_result *l)
{
	printf("this machine, without an engine (one core, best of five rounds)\n"
	       "  copy 4 KiB            %8.1f ns\n"
	       "  ICRC 4 KiB            %8.1f ns\n"
	       "  copy and sum 4 KiB    %8.1f ns\n"
	       "  frames of 8 octets    %8.2f M/s header only, %.2f M/s copied and summed at both ends\n"
	       "  frames of 4096 octets %8.2f M/s copied and summed at both ends: %.1f Gbit/s\n",
	       l->copy_ns, l->icrc_ns, l->copy_and_sum_ns, l->raw_small_pps / 1e6,
	       l->raw_small_full_pps / 1e6, l->raw_full_pps / 1e6, l->raw_full_bits / 1e9);
	if (l->handoff_ns > 0)
		printf("  ring to another core  %8.1f ns one way\n", l->handoff_ns);
	putchar('\n');
}

static void limits_json(struct json *j, const struct limit_result *l)
{
	json_open(j, "limits", '{');
	json_number(j, "copy_4096_ns", l->copy_ns);
	json_number(j, "icrc_4096_ns", l->icrc_ns);
	json_number(j, "copy_and_sum_4096_ns", l->copy_and_sum_ns);
	json_number(j, "frames_8_header_only_per_s", l->raw_small_pps);
	json_number(j, "frames_8_full_per_s", l->raw_small_full_pps);
	json_number(j, "frames_4096_full_per_s", l->raw_full_pps);
	json_number(j, "frames_4096_full_bit_per_s", l->raw_full_bits);
	json_number(j, "ring_one_way_ns", l->handoff_ns);
	json_close(j, '}');
}

/* The fraction of the limit that was reached: of bandwidth from 1 KiB on, of message rate below. */
static double ratio(const struct load_result *r, const struct limit_result *l)
{
	if (l->raw_full_bits <= 0)
		return 0;
	if (r->size >= 1024)
		return (double)r->octets * 8 / r->seconds / l->raw_full_bits;
	return (double)r->messages / r->seconds / l->raw_small_full_pps;
}

static void load_text(const struct load_result *r, const struct limit_result *l)
{
	printf("%-7s %9u %6u %11.4f %11.3f %8.3f %%", operation_name[r->operation], r->size, r->qps,
	       (double)r->messages / r->seconds / 1e6, (double)r->octets * 8 / r->seconds / 1e9,
	       100 * r->again);
	if (l->raw_full_bits > 0)
		printf(" %9.1f %%", 100 * ratio(r, l));
	putchar('\n');
}

static void load_json(struct json *j, const struct load_result *r, const struct limit_result *l)
{
	json_open(j, NULL, '{');
	json_string(j, "operation", operation_name[r->operation]);
	json_integer(j, "size", r->size);
	json_integer(j, "qps", r->qps);
	json_number(j, "sent_again", r->again);
	json_number(j, "seconds", r->seconds);
	json_integer(j, "messages", r->messages);
	json_number(j, "messages_per_s", (double)r->messages / r->seconds);
	json_number(j, "bit_per_s", (double)r->octets * 8 / r->seconds);
	if (l->raw_full_bits > 0)
		json_number(j, "ratio_to_limit", ratio(r, l));
	json_close(j, '}');
}

static int load(struct perf_pair *p, enum perf_operation op, uint32_t size,
		const struct limit_result *l, struct json *j)
{
	const struct perf_options *o = p->options;
	struct load_result r;

	for (uint32_t i = 0; i < o->qps_count; i++) {
		if (load_run(p, op, size, o->qps_of[i], &r) != 0)
			return 1;
		if (o->json)
			load_json(j, &r, l);
		else
			load_text(&r, l);
		fflush(stdout);
	}
	return 0;
}

static int loads(struct perf_pair *p, const struct limit_result *l, struct json *j)
{
	const struct perf_options *o = p->options;

	if (o->json)
		json_open(j, "rates", '[');
	else
		printf("op           octets    qps  M message/s      Gbit/s      again   of limit\n");
	for (uint32_t op = 0; op < PERF_OPERATIONS; op++) {
		for (uint32_t s = 0; o->operation[op] && s < o->sizes; s++) {
			if (op == PERF_ATOMIC && s > 0)
				break;
			if (load(p, op, op == PERF_ATOMIC ? 8 : o->size[s], l, j) != 0)
				return 1;
		}
	}
	if (o->json)
		json_close(j, ']');
	return 0;
}

static void latency_json(struct json *j, uint32_t size, const struct histogram *h)
{
	char key[32];

	json_open(j, NULL, '{');
	json_integer(j, "size", size);
	json_integer(j, "count", h->count);
	for (uint32_t i = 0; i < ARRAY_SIZE(percentiles); i++) {
		snprintf(key, sizeof(key), "p%g_ns", percentiles[i]);
		json_integer(j, key, histogram_percentile(h, percentiles[i]));
	}
	json_close(j, '}');
}

static void latency_text(uint32_t size, const struct histogram *h)
{
	printf("%9u %10lu", size, (unsigned long)h->count);
	for (uint32_t i = 0; i < ARRAY_SIZE(percentiles); i++)
		printf(" %9.2f", (double)histogram_percentile(h, percentiles[i]) / 1e3);
	putchar('\n');
}

static int latencies(struct perf_pair *p, struct json *j)
{
	const struct perf_options *o = p->options;
	static struct histogram h;

	if (o->json)
		json_open(j, "half_round_trips", '[');
	else
		printf("half round trip of a WRITE, us\n   octets      count       p50       p90"
		       "       p99     p99.9       max\n");
	for (uint32_t s = 0; s < o->sizes; s++) {
		if (latency_run(p, o->size[s], &h) != 0)
			return 1;
		if (o->json)
			latency_json(j, o->size[s], &h);
		else
			latency_text(o->size[s], &h);
	}
	if (o->json)
		json_close(j, ']');
	return 0;
}

int main(int argc, char **argv)
{
	struct perf_options o;
	struct perf_pair p;
	struct limit_result l = { 0 };
	struct json j = { .out = stdout };
	int failed;

	if (!perf_options_parse(&o, argc, argv, &failed))
		return failed;
	if (pair_eal(&o) != 0 || (o.limits && limits_run(&o, &l) != 0) || pair_open(&p, &o) != 0)
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
