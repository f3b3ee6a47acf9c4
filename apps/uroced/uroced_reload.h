/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGHUP: reads the options of the command line and of the file of --config again, and puts into
 * force what can change while programs are attached. All of it or nothing.
 */
#ifndef APPS_UROCED_RELOAD_H
#define APPS_UROCED_RELOAD_H

#include "engine/uroce.h"
#include "uroced_options.h"

/* Before the engine starts: keeps what the options say now, and the words of the command line. */
void reload_begin(const struct uroced_options *o, int argc, char **argv);

/* `o`: the options in force, which follow. What happened, and what needs a restart, is said. */
void reload(struct uroce_engine *e, struct uroced_options *o);

#endif
