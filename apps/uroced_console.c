/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_console.h"

#include <stdio.h>
#include <stdlib.h>

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>
#include <cmdline_socket.h>

#include "base/reason.h"
#include "protocol/command.h"

struct console {
	struct cmdline *line;
	struct uroce_engine *engine;
	bool quit;
};

/* rte_cmdline passes only `data` to its commands, so this is global; there is one terminal. */
static struct console console;

struct one_word {
	cmdline_fixed_string_t word;
};

static void show(void *parsed, struct cmdline *cl, void *data)
{
	char text[512];

	uroce_describe(console.engine, text, sizeof(text));
	cmdline_printf(cl, "%s\n", text);
}

static void stats(void *parsed, struct cmdline *cl, void *data)
{
	struct reply_statistics n;

	uroce_statistics(console.engine, &n);
	cmdline_printf(cl, "programs %u, queue pairs %u, completion queues %u, regions %u\n",
		       n.clients, n.qps, n.cqs, n.mrs);
	cmdline_printf(cl, "rx %llu packets, tx %llu packets\n", (unsigned long long)n.rx_packets,
		       (unsigned long long)n.tx_packets);
	for (int i = 1; i < REASON_COUNT; i++)
		if (n.by_reason[i] != 0)
			cmdline_printf(cl, "%s %llu\n", reason_name((enum reason)i),
				       (unsigned long long)n.by_reason[i]);
}

static void quit(void *parsed, struct cmdline *cl, void *data)
{
	console.quit = true;
	cmdline_quit(cl);
}

static cmdline_parse_token_string_t show_word =
	TOKEN_STRING_INITIALIZER(struct one_word, word, "show");
static cmdline_parse_token_string_t stats_word =
	TOKEN_STRING_INITIALIZER(struct one_word, word, "stats");
static cmdline_parse_token_string_t quit_word =
	TOKEN_STRING_INITIALIZER(struct one_word, word, "quit");

static cmdline_parse_inst_t show_command = { .f = show,
					     .help_str = "show: the device",
					     .tokens = { (void *)&show_word, NULL } };
static cmdline_parse_inst_t stats_command = { .f = stats,
					      .help_str = "stats: counters",
					      .tokens = { (void *)&stats_word, NULL } };
static cmdline_parse_inst_t quit_command = { .f = quit,
					     .help_str = "quit: end the engine",
					     .tokens = { (void *)&quit_word, NULL } };

static cmdline_parse_ctx_t commands[] = { &show_command, &stats_command, &quit_command, NULL };

struct console *console_open(struct uroce_engine *e)
{
	console = (struct console){ .engine = e };
	console.line = cmdline_stdin_new(commands, "uroced> ");
	return console.line != NULL ? &console : NULL;
}

bool console_input(struct console *c)
{
	int status = cmdline_poll(c->line);

	return status >= 0 && status != RDLINE_EXITED && !c->quit;
}

void console_close(struct console *c)
{
	cmdline_stdin_exit(c->line);
}
