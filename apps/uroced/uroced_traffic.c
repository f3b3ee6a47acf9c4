/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt's commands `start`, `stop`, `show traffic` and `set traffic`, as dpdk-testpmd's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "traffic.h"
#include "uroced_commands.h"

#define DEVICE	    "uroce0"
#define QPN_MOST    0xfffffeu
#define PERIOD_MOST 3600u

enum end {
	SINK,
	SOURCE,
	ENDS,
};

static const char *const end_name[ENDS] = { "rx", "tx" };

static struct traffic *running[ENDS];
static struct traffic_settings settings = { .size = 64 };

static void print_end(enum end end, const struct traffic_counts *c)
{
	char text[160];

	traffic_text(c, text, sizeof(text));
	printf("%s: %s\n", end_name[end], text);
}

/* ---- start ---- */

/* False: the command has failed. */
static bool may_start(enum end end, const char *command)
{
	static bool listed; /* in this process, for libibverbs */
	int error = 0;

	if (running[end] != NULL) {
		console_fail("%s: already running; `stop` ends it", command);
		return false;
	}
	if (!listed)
		error = uroce_register(console.engine);
	listed = error == 0;
	if (!listed)
		console_fail("%s: %s", command,
			     error == ENOENT ? "the libibverbs.so.1 in use is not uroce's"
					     : strerror(error));
	return listed;
}

static void begin(enum end end, const char *command, const char *to, uint32_t qpn)
{
	char why[160];

	if (!may_start(end, command))
		return;
	running[end] = traffic_start(DEVICE, to, qpn, &settings, why, sizeof(why));
	if (running[end] == NULL)
		console_fail("%s: %s", command, why);
	else if (end == SINK)
		printf("rx: queue pair 0x%06x\n", traffic_qpn(running[end]));
}

static void start_rx(void *parsed, struct cmdline *cl, void *data)
{
	begin(SINK, "start rx", NULL, 0);
}

static bool target_is_right(const struct words *w)
{
	char *end;
	unsigned long qpn = strtoul(w->word[3], &end, 0);

	if (w->word[3][0] >= '0' && w->word[3][0] <= '9' && *end == '\0' && qpn >= 2 &&
	    qpn <= QPN_MOST)
		return true;
	console_fail("start tx %.64s %.32s: must be the number of a queue pair, 2 .. 0xfffffe",
		     w->word[2], w->word[3]);
	return false;
}

static void start_tx(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	char command[128];

	snprintf(command, sizeof(command), "start tx %.64s %.32s", w->word[2], w->word[3]);
	if (target_is_right(w))
		begin(SOURCE, command, w->word[2], (uint32_t)strtoul(w->word[3], NULL, 0));
}

/* ---- stop, show, set ---- */

void console_traffic_close(void)
{
	struct traffic_counts c;

	for (enum end i = SINK; i < ENDS; i++)
		if (running[i] != NULL)
			traffic_stop(running[i], &c);
	running[SINK] = running[SOURCE] = NULL;
}

static void stop(void *parsed, struct cmdline *cl, void *data)
{
	struct traffic_counts c;

	if (running[SINK] == NULL && running[SOURCE] == NULL)
		console_fail("stop: no traffic runs");
	/* the source first, so that the sink still counts */
	for (int i = ENDS - 1; i >= 0; i--) {
		if (running[i] == NULL)
			continue;
		traffic_stop(running[i], &c);
		running[i] = NULL;
		print_end((enum end)i, &c);
	}
}

static void show_traffic(void *parsed, struct cmdline *cl, void *data)
{
	struct traffic_counts c;

	for (int i = ENDS - 1; i >= 0; i--) {
		if (running[i] == NULL)
			continue;
		traffic_count(running[i], &c);
		print_end((enum end)i, &c);
	}
	printf("size %u octets, rate %u messages/s%s, period %u s%s\n", settings.size,
	       settings.rate, settings.rate == 0 ? " (as fast as it goes)" : "", settings.period,
	       settings.period == 0 ? " (no lines)" : "");
}

static const struct setting {
	const char *name;
	uint32_t *value;
	uint32_t least, most;
} setting[] = { { "size", &settings.size, 1, TRAFFIC_SIZE_MOST },
		{ "rate", &settings.rate, 0, TRAFFIC_RATE_MOST },
		{ "period", &settings.period, 0, PERIOD_MOST } };

static const struct setting *setting_of(const struct words *w)
{
	uint32_t i = 0;

	while (strcmp(w->word[2], setting[i].name) != 0)
		i++; /* rte_cmdline takes no other word */
	return &setting[i];
}

static bool setting_is_right(const struct words *w)
{
	const struct setting *s = setting_of(w);
	char *end;
	unsigned long value = strtoul(w->word[3], &end, 10);

	if (w->word[3][0] >= '0' && w->word[3][0] <= '9' && *end == '\0' && value >= s->least &&
	    value <= s->most)
		return true;
	console_fail("set traffic %s %s: must be in %u .. %u", w->word[2], w->word[3], s->least,
		     s->most);
	return false;
}

static void set_traffic(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;

	if (setting_is_right(w)) /* relaxed: the threads see it when they look */
		__atomic_store_n(setting_of(w)->value, (uint32_t)strtoul(w->word[3], NULL, 10),
				 __ATOMIC_RELAXED);
}

WORD(start_word, 0, "start");
WORD(stop_word, 0, "stop");
WORD(show_word, 0, "show");
WORD(set_word, 0, "set");
WORD(rx_word, 1, "rx");
WORD(tx_word, 1, "tx");
WORD(traffic_word, 1, "traffic");
WORD(address_word, 2, ANY_WORD);
WORD(qpn_word, 3, ANY_WORD);
WORD(setting_word, 2, "size#rate#period");
WORD(value_word, 3, ANY_WORD);

static cmdline_parse_inst_t start_rx_command = {
	.f = start_rx,
	.help_str = "start rx: make a queue pair, print its number and count datagrams to it",
	.tokens = { (void *)&start_word, (void *)&rx_word, NULL },
};
static cmdline_parse_inst_t start_tx_command = {
	.f = start_tx,
	VALUES(target_is_right),
	.help_str = "start tx ADDRESS QPN: send datagrams to that queue pair of another `start rx`",
	.tokens = { (void *)&start_word, (void *)&tx_word, (void *)&address_word, (void *)&qpn_word,
		    NULL },
};
static cmdline_parse_inst_t stop_command = {
	.f = stop,
	.help_str = "stop: end the traffic of `start`, and print its totals",
	.tokens = { (void *)&stop_word, NULL },
};
static cmdline_parse_inst_t show_traffic_command = {
	.f = show_traffic,
	.help_str = "show traffic: the traffic of `start` so far, and its settings",
	.tokens = { (void *)&show_word, (void *)&traffic_word, NULL },
};
static cmdline_parse_inst_t set_traffic_command = {
	.f = set_traffic,
	VALUES(setting_is_right),
	.help_str = "set traffic size|rate|period N: octets of a message, messages a second (0: as "
		    "fast as it goes), seconds between lines about it (0: none)",
	.tokens = { (void *)&set_word, (void *)&traffic_word, (void *)&setting_word,
		    (void *)&value_word, NULL },
};

cmdline_parse_inst_t *const traffic_commands[] = { &start_rx_command,	 &start_tx_command,
						   &stop_command,	 &show_traffic_command,
						   &set_traffic_command, NULL };
