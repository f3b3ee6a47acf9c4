/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <stdio.h>

#include "base/bits.h"

static const double percentiles[] = { 50, 90, 99, 99.9, 100 };

void limits_text(const struct limit_result *l)
{
	printf("this machine, without an engine (one core, best of five rounds)\n"
	       "  copy 4 KiB            %8.1f ns\n"
	       "  ICRC 4 KiB            %8.1f ns\n"
	       "  copy and sum 4 KiB    %8.1f ns\n"
	       "  frames of 8 octets    %8.2f M/s header only, %.2f M/s copied and summed at both ends\n"
	       "  frames of 4096 octets %8.2f M/s copied and summed at both ends: %.1f Gbit/s\n",
	       l->copy_ns, l->icrc_ns, l->copy_and_sum_ns, l->raw_small_pps / 1e6,
	       l->raw_small_full_pps / 1e6, l->raw_full_pps / 1e6, l->raw_full_bits / 1e9);
	for (uint32_t i = 0; i < l->sizes; i++)
		printf("  messages of %8u   %8.4f M/s, all of their octets copied and summed at both ends: %.1f Gbit/s\n",
		       l->message[i].size, l->message[i].of_one / 1e6,
		       l->message[i].of_one * l->message[i].size * 8 / 1e9);
	for (uint32_t i = 0; i < l->sizes && l->small_of_two > 0; i++)
		printf("  messages of %8u   %8.4f M/s from one core to another, so each end has a core: %.1f Gbit/s\n",
		       l->message[i].size, l->message[i].of_two / 1e6,
		       l->message[i].of_two * l->message[i].size * 8 / 1e9);
	if (l->handoff_ns > 0)
		printf("  ring to another core  %8.1f ns one way\n", l->handoff_ns);
	putchar('\n');
}

void limits_json(struct json *j, const struct limit_result *l)
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
	json_open(j, "messages", '[');
	for (uint32_t i = 0; i < l->sizes; i++) {
		json_open(j, NULL, '{');
		json_integer(j, "size", l->message[i].size);
		json_number(j, "messages_per_s", l->message[i].of_one);
		if (l->small_of_two > 0)
			json_number(j, "two_cores_messages_per_s", l->message[i].of_two);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

void flaws_head(const struct perf_options *o)
{
	if (o->losses > 0)
		printf("    lost    ");
	if (o->reorders > 0)
		printf("  passed    ");
}

void flaws_text(const struct perf_flaws *f)
{
	if (f->loss >= 0)
		printf("%8g %%  ", f->loss);
	if (f->reordered >= 0)
		printf("%8g %%  ", f->reordered);
}

void flaws_json(struct json *j, const struct perf_flaws *f)
{
	if (f->loss >= 0)
		json_number(j, "loss_percent", f->loss);
	if (f->reordered >= 0)
		json_number(j, "reordered_percent", f->reordered);
}

void latency_json(struct json *j, uint32_t size, const struct perf_flaws *f,
		  const struct histogram *h)
{
	char key[32];

	json_open(j, NULL, '{');
	json_integer(j, "size", size);
	flaws_json(j, f);
	json_integer(j, "count", h->count);
	for (uint32_t i = 0; i < ARRAY_SIZE(percentiles); i++) {
		snprintf(key, sizeof(key), "p%g_ns", percentiles[i]);
		json_integer(j, key, histogram_percentile(h, percentiles[i]));
	}
	json_close(j, '}');
}

void latency_text(uint32_t size, const struct perf_flaws *f, const struct histogram *h)
{
	flaws_text(f);
	printf("%9u %10lu", size, (unsigned long)h->count);
	for (uint32_t i = 0; i < ARRAY_SIZE(percentiles); i++)
		printf(" %9.2f", (double)histogram_percentile(h, percentiles[i]) / 1e3);
	putchar('\n');
}

void latency_head(const struct perf_options *o)
{
	printf("half round trip of a WRITE, us\n");
	flaws_head(o);
	printf("   octets      count       p50       p90       p99     p99.9       max\n");
}
