/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt of `uroced -- -i`: show, stats, quit. */
#ifndef APPS_UROCED_CONSOLE_H
#define APPS_UROCED_CONSOLE_H

#include <stdbool.h>

#include "engine/uroce.h"

struct console;

struct console *console_open(struct uroce_engine *e);
/* Call it when standard input is readable. False: the user is done. */
bool console_input(struct console *c);
void console_close(struct console *c);

#endif
