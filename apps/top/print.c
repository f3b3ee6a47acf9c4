/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows have the columns of the lists of `uroce stat`, and rates. */
#include "print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "json.h"
#include "lists.h"
#include "locate.h"

#define COLUMNS_MOST 16u
#define HEAD_LINES   3u /* of the page, and of each table: an empty one, its title */
#define TABLE_LINES  2u

/* ---- rows as text ---- */

struct column {
	const char *key; /* of list_fields; NULL: sends and receives */
	const char *title;
	int width; /* negative: to the left */
};

static const struct column program_columns[] = {
	{ "pid", "pid", 7 },	      { "uid", "uid", 6 },	     { "qps", "qps", 6 },
	{ "mrs", "regions", 7 },      { "memory", "qp memory", 12 }, { NULL, "", 0 },
	{ "program", "program", -1 },
};

static const struct column qp_columns[] = {
	{ "qpn", "qpn", -8 },	 { "type", "type", -10 }, { "state", "state", -5 },
	{ "peer", "peer", -20 }, { "way", "way", -10 },	  { "lcore", "lcore", 5 },
	{ NULL, "", 0 },	 { "pid", "pid", 7 },	  { "program", "program", -1 },
};

struct fields {
	struct {
		const char *key;
		char text[64];
	} field[COLUMNS_MOST];
	uint32_t fields;
};

static void take_field(void *arg, const char *key, const char *text, bool number)
{
	struct fields *f = arg;

	if (f->fields == COLUMNS_MOST)
		return;
	f->field[f->fields].key = key;
	snprintf(f->field[f->fields].text, sizeof(f->field[0].text), "%s", text);
	f->fields++;
}

static const char *find(const struct fields *f, const char *key)
{
	for (uint32_t i = 0; i < f->fields; i++)
		if (strcmp(f->field[i].key, key) == 0)
			return f->field[i].text;
	return "";
}

static void print_head(FILE *out, const struct column *c, size_t columns)
{
	fputc('\n', out);
	for (size_t i = 0; i < columns; i++)
		if (c[i].key == NULL)
			fprintf(out, "%12s %12s  ", "sends/s", "receives/s");
		else
			fprintf(out, "%*s%s", c[i].width, c[i].title, i + 1 < columns ? " " : "\n");
}

static void print_row(FILE *out, enum list_of what, const void *entry, const struct rates *r,
		      const struct column *c, size_t columns)
{
	struct fields f = { .fields = 0 };

	list_fields(what, entry, take_field, &f);
	for (size_t i = 0; i < columns; i++)
		if (c[i].key == NULL)
			fprintf(out, "%12.1f %12.1f  ", r->sends, r->receives);
		else
			fprintf(out, "%*s%s", c[i].width, find(&f, c[i].key),
				i + 1 < columns ? " " : "\n");
}

static const char *way_name(uint8_t way)
{
	static const char *const names[] = { "-", "port", "here", "unreachable", "by-request" };

	return way < ARRAY_SIZE(names) ? names[way] : "?";
}

static void print_peer(FILE *out, const struct ranked_peer *p)
{
	char text[64];

	fprintf(out, "%-39s %-11s %6u %12.1f %12.1f\n", address_of_gid(&p->gid, text, sizeof(text)),
		way_name(p->way), p->qps, p->rates.sends, p->rates.receives);
}

/* ---- the page ---- */

static double rate_of(const struct summary_of_top *s, uint64_t now, uint64_t before)
{
	return s->seconds > 0 ? (double)(now - before) / s->seconds : 0;
}

/* The share of the lcores' polls that found work, in percent. */
static double busy(const struct summary_of_top *s)
{
	uint64_t polls = s->now.polls - s->before.polls;
	uint64_t idle = s->now.idle_polls - s->before.idle_polls;

	return s->seconds > 0 && polls > 0 ? 100.0 * (1 - (double)idle / (double)polls) : 0;
}

static void print_summary(FILE *out, const struct summary_of_top *s, const struct ranks *r)
{
	char text[512];

	engine_describe(s->device, text, sizeof(text));
	fprintf(out, "%s: %u programs, %u queue pairs; %.1f %% of the polls find work\n", text,
		s->now.clients, s->now.qps, busy(s));
	fprintf(out, "queue pairs: %.1f packets/s sent, %.1f received; sent again: %.1f/s\n",
		r->all.sends, r->all.receives,
		rate_of(s, s->now.retransmitted, s->before.retransmitted));
	fprintf(out, "port: %.1f frames/s sent, %.1f received; %.1f Mbit/s sent, %.1f received\n",
		rate_of(s, s->now.tx_packets, s->before.tx_packets),
		rate_of(s, s->now.rx_packets, s->before.rx_packets),
		rate_of(s, s->now.tx_octets, s->before.tx_octets) * 8 / 1e6,
		rate_of(s, s->now.rx_octets, s->before.rx_octets) * 8 / 1e6);
}

struct share {
	uint32_t programs, peers, qps;
};

static void print_tables(FILE *out, const struct ranks *r, const struct share *n)
{
	print_head(out, program_columns, ARRAY_SIZE(program_columns));
	for (uint32_t i = 0; i < n->programs; i++)
		print_row(out, LIST_PROGRAMS, &r->program[i].program, &r->program[i].rates,
			  program_columns, ARRAY_SIZE(program_columns));
	fprintf(out, "\n%-39s %-11s %6s %12s %12s\n", "peer", "way", "qps", "sends/s",
		"receives/s");
	for (uint32_t i = 0; i < n->peers; i++)
		print_peer(out, &r->peer[i]);
	print_head(out, qp_columns, ARRAY_SIZE(qp_columns));
	for (uint32_t i = 0; i < n->qps; i++)
		print_row(out, LIST_QPS, &r->qp[i].qp, &r->qp[i].rates, qp_columns,
			  ARRAY_SIZE(qp_columns));
}

static uint32_t at_most(uint32_t n, uint32_t lines)
{
	return lines > 0 ? MIN_OF(n, lines) : n;
}

void top_print(FILE *out, const struct summary_of_top *s, const struct ranks *r, uint32_t lines)
{
	const struct share n = { at_most(r->programs, lines), at_most(r->peers, lines),
				 at_most(r->qps, lines) };

	print_summary(out, s, r);
	print_tables(out, r, &n);
}

/* Programs and peers get a quarter each at most, and queue pairs what is left. */
void top_print_page(FILE *out, const struct summary_of_top *s, const struct ranks *r,
		    uint32_t height)
{
	uint32_t used = HEAD_LINES + 3 * TABLE_LINES + 1; /* the cursor has a line, too */
	uint32_t left = height > used ? height - used : 0;
	struct share n = { .programs = MIN_OF(r->programs, left / 4),
			   .peers = MIN_OF(r->peers, left / 4) };

	n.qps = MIN_OF(r->qps, left - n.programs - n.peers);
	print_summary(out, s, r);
	print_tables(out, r, &n);
}

/* ---- JSON ---- */

static void json_field(void *arg, const char *key, const char *text, bool number)
{
	if (number)
		json_integer(arg, key, strtoull(text, NULL, 0));
	else
		json_string(arg, key, text);
}

static void json_rates(struct json *j, const struct rates *r)
{
	json_number(j, "sends_per_second", r->sends);
	json_number(j, "receives_per_second", r->receives);
}

static void json_entry(struct json *j, enum list_of what, const void *entry, const struct rates *r)
{
	json_open(j, NULL, '{');
	list_fields(what, entry, json_field, j);
	json_rates(j, r);
	json_close(j, '}');
}

static void json_peer(struct json *j, const struct ranked_peer *p)
{
	char text[64];

	json_open(j, NULL, '{');
	json_string(j, "peer", address_of_gid(&p->gid, text, sizeof(text)));
	json_string(j, "way", way_name(p->way));
	json_integer(j, "qps", p->qps);
	json_rates(j, &p->rates);
	json_close(j, '}');
}

void top_print_json(FILE *out, const struct summary_of_top *s, const struct ranks *r,
		    uint32_t lines)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "device", s->device->name);
	json_number(&j, "seconds", s->seconds);
	json_number(&j, "busy_polls_percent", busy(s));
	json_rates(&j, &r->all);
	json_open(&j, "programs", '[');
	for (uint32_t i = 0; i < at_most(r->programs, lines); i++)
		json_entry(&j, LIST_PROGRAMS, &r->program[i].program, &r->program[i].rates);
	json_close(&j, ']');
	json_open(&j, "peers", '[');
	for (uint32_t i = 0; i < at_most(r->peers, lines); i++)
		json_peer(&j, &r->peer[i]);
	json_close(&j, ']');
	json_open(&j, "queue_pairs", '[');
	for (uint32_t i = 0; i < at_most(r->qps, lines); i++)
		json_entry(&j, LIST_QPS, &r->qp[i].qp, &r->qp[i].rates);
	json_close(&j, ']');
	json_close(&j, '}');
}
