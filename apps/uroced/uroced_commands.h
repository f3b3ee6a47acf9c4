/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the prompt's commands. */
#ifndef APPS_UROCED_COMMANDS_H
#define APPS_UROCED_COMMANDS_H

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>

#include "lists.h"
#include "protocol/command.h"
#include "uroced_console.h"

/* A command is words; tokens say which. */
struct words {
	cmdline_fixed_string_t word[5];
};

#define WORD(name, index, text)                    \
	static cmdline_parse_token_string_t name = \
		TOKEN_STRING_INITIALIZER(struct words, word[index], text)
#define ANY_WORD NULL

/*
 * Whether a command takes these values, as far as that does not depend on what the engine is doing. If not, it has
 * called console_fail(). A file of commands is checked so before its first line is executed.
 */
struct values {
	bool (*right)(const struct words *w);
};
#define VALUES(check)            \
	.data = &(struct values) \
	{                        \
		check            \
	}

/* rte_cmdline passes commands no context, so this is global. It belongs to the main thread. */
struct console_state {
	struct uroce_engine *engine;
	struct uroced_options *options;
	struct reply_statistics cleared; /* counters at `clear stats` */
	struct reply_statistics cleared_memory; /* ... and at `clear memory` */
	char failed[512]; /* what went wrong with this command; "": nothing */
	bool from_file; /* the present command: its failure is reported with file and line */
	bool quit;
};
extern struct console_state console;

/* The command fails for this reason, one line without its end. */
void console_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Subtracts the counts before `clear` from an entry of this list. NULL: entries of the list have no
 * counts. Other programs still see all counts.
 */
void (*console_since(enum list_of what))(void *entry);
void console_since_connection(struct cm_listed *id);
/* Forgets these counts. */
void console_clear_close(void);

/* `show config`: a line for each option, as it is in force. */
void console_show_config(void);

/* Each ends with NULL. */
extern cmdline_parse_inst_t *const show_commands[];
extern cmdline_parse_inst_t *const clear_commands[];
extern cmdline_parse_inst_t *const set_commands[];
extern cmdline_parse_inst_t *const impair_commands[];
extern cmdline_parse_inst_t *const capture_commands[];
extern cmdline_parse_inst_t *const traffic_commands[];
extern cmdline_parse_inst_t *const trace_commands[];

/* Ends a capture that still runs: its file is whole then. */
void console_capture_close(void);
/* Ends the traffic of `start`. */
void console_traffic_close(void);

#endif
