/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Explains what is wrong with a command of the prompt. rte_cmdline itself says "Bad arguments" for
 * any line.
 */
#ifndef APPS_UROCED_EXPLAIN_H
#define APPS_UROCED_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include <cmdline_parse.h>

/*
 * False: the line is one of these commands, or has no words. True: it is not, and `why` says in one line
 * which word is missing, wrong or one too many, and what may stand there. Commands consist of words
 * (cmdline_parse_string.h); others are passed over. Their help_str begins with the words and a colon.
 */
bool explain_line(cmdline_parse_ctx_t *commands, const char *line, char *why, size_t why_size);
/* The command that the line is; NULL: none of these. */
const cmdline_parse_inst_t *explain_command(cmdline_parse_ctx_t *commands, const char *line);

#endif
