/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The prompt of `uroced -- -i`, and the commands of --cmdline-file: rte_cmdline, as in dpdk-testpmd.
 * Each group of commands has a file: uroced_show.c, uroced_set.c. The main thread runs them all.
 */
#ifndef APPS_UROCED_CONSOLE_H
#define APPS_UROCED_CONSOLE_H

#include <stdbool.h>

#include "engine/uroce.h"
#include "uroced_options.h"

/* There is one prompt in a process. `o` stays the caller's; `set idle` changes it, too. */
bool console_open(struct uroce_engine *e, struct uroced_options *o);
/* Before anything is started: whether the file can be read twice. 0, or OPTIONS_USAGE and one line in `why`. */
int console_check_file(const char *path, char *why, size_t why_size);
/*
 * Checks all lines of the file, then executes them, up to the first that fails. 0, or one line in `why`
 * that names the file and the line, and OPTIONS_USAGE: nothing was executed, or 1.
 */
int console_run_file(const char *path, char *why, size_t why_size);
/* Reads standard input from now on. False: it cannot. */
bool console_attach(void);
/* Call it when standard input is readable. False: the user is done. */
bool console_input(void);
/* A command has requested the end. */
bool console_wants_end(void);
void console_close(void);

#endif
