/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt's commands `show impair` and `set impair`: what a net_impair port does to frames. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/bits.h"
#include "drivers/net_impair/live.h"
#include "uroced_commands.h"
#include "uroced_set.h"

#define ONE	   4294967296.0 /* probability 1, as the rules have it */
#define DELAY_MOST 1000000u /* us */

/* The names are those of the device's arguments. */
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
}

/* "0.01" or "1%", as a threshold for 32 random bits. */
static bool read_chance(const char *text, uint64_t *threshold)
{
	char *end;
	double p = strtod(text, &end);

	if (end != text && strcmp(end, "%") == 0)
		p /= 100;
	else if (end == text || *end != '\0')
		return false;
	if (!(p >= 0 && p <= 1)) /* not a number, too */
		return false;
	*threshold = (uint64_t)(p * ONE);
	return true;
}

static void set_impair(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	struct impair_rules *r = rules();
	uint64_t threshold;

	if (r == NULL)
		return;
	if (!read_chance(w->word[3], &threshold)) {
		console_fail("set impair %s %s: must be a fraction in 0 .. 1 or a percentage",
			     w->word[2], w->word[3]);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(chances); i++)
		if (strcmp(w->word[2], chances[i].name) == 0)
			impair_rule_set(rule_at(r, chances[i].offset), threshold);
}

static void set_impair_delay(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	struct impair_rules *r = rules();
	char *end;
	unsigned long us = strtoul(w->word[3], &end, 10);

	if (r == NULL)
		return;
	if (w->word[3][0] < '0' || w->word[3][0] > '9' || *end != '\0' || us > DELAY_MOST)
		console_fail("set impair delay_us %s: must be in 0 .. %u", w->word[3], DELAY_MOST);
	else
		impair_rule_set(&r->delay, us * (rte_get_tsc_hz() / 1000000));
}

WORD(show_word, 0, "show");
WORD(set_word, 0, "set");
WORD(impair_word, 1, "impair");
WORD(chance_word, 2, CHANCES);
WORD(delay_word, 2, "delay_us");
WORD(value_word, 3, ANY_WORD);

static cmdline_parse_inst_t show_impair_command = {
	.f = show_impair,
	.help_str = "show impair: what a net_impair port does to frames",
	.tokens = { (void *)&show_word, (void *)&impair_word, NULL },
};
static cmdline_parse_inst_t set_impair_command = {
	.f = set_impair,
	.help_str = "set impair drop|duplicate|reorder|corrupt|ce P: how many frames, 0.01 or 1%",
	.tokens = { (void *)&set_word, (void *)&impair_word, (void *)&chance_word,
		    (void *)&value_word, NULL },
};
static cmdline_parse_inst_t set_impair_delay_command = {
	.f = set_impair_delay,
	.help_str = "set impair delay_us N: how late each frame is, in microseconds",
	.tokens = { (void *)&set_word, (void *)&impair_word, (void *)&delay_word,
		    (void *)&value_word, NULL },
};

cmdline_parse_inst_t *const impair_commands[] = { &show_impair_command, &set_impair_command,
						  &set_impair_delay_command, NULL };
