/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of --config: lines 'name = value' below [uroced], with the names of the long options. A
 * # at the beginning of a line, or behind white space, begins a comment.
 */
#ifndef APPS_UROCED_CONFIG_H
#define APPS_UROCED_CONFIG_H

#include "apps/options.h"

/*
 * Stores what the file has and the command line (t->given) has not. Returns OPTIONS_OK, or another
 * and one line in t->why, which names the file and, where there is one, the line.
 */
int config_read(struct option_table *t, const char *path);

#endif
