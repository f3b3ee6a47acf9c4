/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt's commands `show impair` and `set impair`: what a net_impair port does to frames. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/bits.h"
#include "drivers/net_impair/arguments.h"
#include "drivers/net_impair/live.h"
#include "uroced_commands.h"
#include "uroced_set.h"

#define ONE 4294967296.0 /* probability 1, as the rules have it */

/* The names are the device's arguments. */
static const struct {
	const char *name;
	size_t offset; /* of a uint64_t in struct impair_rules */
	const char *what;
} chances[] = {
	{ "drop", offsetof(struct impair_rules, drop), "frames that are lost" },
	{ "duplicate", offsetof(struct impair_rules, duplicate), "... that come twice" },
	{ "reorder", offsetof(struct impair_rules, reorder), "... that others overtake" },
	{ "corrupt", offsetof(struct impair_rules, corrupt), "... with a bit changed" },
	{ "ce", offsetof(struct impair_rules, ce), "... marked: congestion experienced" },
};

#define CHANCES "drop#duplicate#reorder#corrupt#ce"

static struct impair_rules *rules(void)
{
	struct impair_rules *r;
	uint16_t id;

	r = console_port_id(&id) ? net_impair_rules(id) : NULL;
	if (r == NULL)
		console_fail("impair: the port is not a net_impair device; start uroced with "
			     "--vdev=net_impair0,port=NAME behind the device NAME, and --port "
			     "net_impair0");
	return r;
}

static uint64_t *rule_at(struct impair_rules *r, size_t offset)
{
	return (uint64_t *)((char *)r + offset);
}

static void show_rate(const struct impair_rules *r)
{
	if (r->rate == 0) {
		printf("%-9s %11s  bits a second: as fast as the port is\n", "rate", "off");
		return;
	}
	printf("%-9s %11" PRIu64 "  bits a second\n", "rate", r->rate);
	printf("%-9s %11" PRIu64 "  octets of buffer before that limit\n", "queue", r->queue);
	if (r->ecn == UINT64_MAX)
		printf("%-9s %11s  no frame is marked for a long queue\n", "ecn", "off");
	else
		printf("%-9s %11" PRIu64 "  octets in the buffer above which frames are marked\n",
		       "ecn", r->ecn);
}

static void show_impair(void *parsed, struct cmdline *cl, void *data)
{
	struct impair_rules *r = rules();

	if (r == NULL)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(chances); i++)
		printf("%-9s %10.6f%%  %s\n", chances[i].name,
		       100.0 * (double)*rule_at(r, chances[i].offset) / ONE, chances[i].what);
	printf("%-9s %10.0f   microseconds that each frame is late\n", "delay_us",
	       (double)r->delay * 1e6 / (double)rte_get_tsc_hz());
	show_rate(r);
}

/* `right`: the value is accepted. */
static bool accept(const struct words *w, bool right, const char *accepted)
{
	if (!right)
		console_fail("set impair %s %s: must be %s", w->word[2], w->word[3], accepted);
	return right;
}

static bool off(const struct words *w)
{
	return strcmp(w->word[3], "off") == 0;
}

static bool chance_is_right(const struct words *w)
{
	uint64_t v;

	return accept(w, impair_read_chance(w->word[3], &v), IMPAIR_CHANCE_ACCEPTED);
}

static bool delay_is_right(const struct words *w)
{
	uint64_t v;

	return accept(w, impair_read_delay(w->word[3], &v), IMPAIR_DELAY_ACCEPTED);
}

static bool rate_is_right(const struct words *w)
{
	uint64_t v;

	return accept(w, off(w) || impair_read_rate(w->word[3], &v),
		      "off, or " IMPAIR_RATE_ACCEPTED);
}

static bool queue_is_right(const struct words *w)
{
	uint64_t v;

	return accept(w, impair_read_octets(w->word[3], &v), IMPAIR_OCTETS_ACCEPTED);
}

static bool ecn_is_right(const struct words *w)
{
	uint64_t v;

	return accept(w, off(w) || impair_read_octets(w->word[3], &v),
		      "off, or " IMPAIR_OCTETS_ACCEPTED);
}

static void set_impair(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	struct impair_rules *r = rules();
	uint64_t threshold;

	if (r == NULL || !chance_is_right(w))
		return;
	impair_read_chance(w->word[3], &threshold);
	for (size_t i = 0; i < ARRAY_SIZE(chances); i++)
		if (strcmp(w->word[2], chances[i].name) == 0)
			impair_rule_set(rule_at(r, chances[i].offset), threshold);
}

static void set_impair_delay(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	struct impair_rules *r = rules();
	uint64_t us;

	if (r == NULL || !delay_is_right(w))
		return;
	impair_read_delay(w->word[3], &us);
	impair_rule_set(&r->delay, impair_delay_cycles(us, rte_get_tsc_hz()));
}

/* Without a rate no frame waits, so the buffer goes with it. */
static void set_impair_rate(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	struct impair_rules *r = rules();
	uint64_t rate = 0;

	if (r == NULL || !rate_is_right(w))
		return;
	if (!off(w))
		impair_read_rate(w->word[3], &rate);
	impair_rule_set(&r->rate, rate);
	if (rate != 0)
		return;
	impair_rule_set(&r->ecn, UINT64_MAX);
	impair_rule_set(&r->queue, IMPAIR_QUEUE_DEFAULT);
}

/* The rules that belong to a rate, and none without one; NULL: refused. */
static struct impair_rules *rules_with_rate(const struct words *w)
{
	struct impair_rules *r = rules();

	if (r == NULL || r->rate != 0)
		return r;
	console_fail("set impair %s %s: no frame waits without a rate; use `set impair rate` first",
		     w->word[2], w->word[3]);
	return NULL;
}

static void set_impair_queue(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	struct impair_rules *r = rules_with_rate(w);
	uint64_t octets;

	if (r == NULL || !queue_is_right(w))
		return;
	impair_read_octets(w->word[3], &octets);
	if (r->ecn != UINT64_MAX && octets <= r->ecn)
		console_fail("set impair queue %s: must be more than ecn, %" PRIu64, w->word[3],
			     r->ecn);
	else
		impair_rule_set(&r->queue, octets);
}

static void set_impair_ecn(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	struct impair_rules *r = rules_with_rate(w);
	uint64_t octets = UINT64_MAX;

	if (r == NULL || !ecn_is_right(w))
		return;
	if (!off(w))
		impair_read_octets(w->word[3], &octets);
	if (octets != UINT64_MAX && octets >= r->queue)
		console_fail("set impair ecn %s: must be less than queue, %" PRIu64, w->word[3],
			     r->queue);
	else
		impair_rule_set(&r->ecn, octets);
}

WORD(show_word, 0, "show");
WORD(set_word, 0, "set");
WORD(impair_word, 1, "impair");
WORD(chance_word, 2, CHANCES);
WORD(delay_word, 2, "delay_us");
WORD(rate_word, 2, "rate");
WORD(queue_word, 2, "queue");
WORD(ecn_word, 2, "ecn");
WORD(value_word, 3, ANY_WORD);

static cmdline_parse_inst_t show_impair_command = {
	.f = show_impair,
	.help_str = "show impair: what a net_impair port does to frames",
	.tokens = { (void *)&show_word, (void *)&impair_word, NULL },
};
static cmdline_parse_inst_t set_impair_command = {
	.f = set_impair,
	VALUES(chance_is_right),
	.help_str = "set impair drop|duplicate|reorder|corrupt|ce P: how many frames, 0.01 or 1%",
	.tokens = { (void *)&set_word, (void *)&impair_word, (void *)&chance_word,
		    (void *)&value_word, NULL },
};
static cmdline_parse_inst_t set_impair_delay_command = {
	.f = set_impair_delay,
	VALUES(delay_is_right),
	.help_str = "set impair delay_us N: how late each frame is, in microseconds",
	.tokens = { (void *)&set_word, (void *)&impair_word, (void *)&delay_word,
		    (void *)&value_word, NULL },
};

static cmdline_parse_inst_t set_impair_rate_command = {
	.f = set_impair_rate,
	VALUES(rate_is_right),
	.help_str =
		"set impair rate BITS|off: bits a second, 100k .. 1000G; off: as fast as the port is",
	.tokens = { (void *)&set_word, (void *)&impair_word, (void *)&rate_word,
		    (void *)&value_word, NULL },
};
static cmdline_parse_inst_t set_impair_queue_command = {
	.f = set_impair_queue,
	VALUES(queue_is_right),
	.help_str = "set impair queue OCTETS: the buffer in front of that rate, 1k .. 16M",
	.tokens = { (void *)&set_word, (void *)&impair_word, (void *)&queue_word,
		    (void *)&value_word, NULL },
};
static cmdline_parse_inst_t set_impair_ecn_command = {
	.f = set_impair_ecn,
	VALUES(ecn_is_right),
	.help_str =
		"set impair ecn OCTETS|off: mark frames while the buffer holds more than that, 1k .. 16M",
	.tokens = { (void *)&set_word, (void *)&impair_word, (void *)&ecn_word, (void *)&value_word,
		    NULL },
};

cmdline_parse_inst_t *const impair_commands[] = {
	&show_impair_command,
	&set_impair_command,
	&set_impair_delay_command,
	&set_impair_rate_command,
	&set_impair_queue_command,
	&set_impair_ecn_command,
	NULL,
};
