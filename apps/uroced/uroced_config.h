/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of --config: lines 'name = value' below [uroced], with the names of the long options. A
 * # at the beginning of a line, or behind white space, begins a comment.
 */
#ifndef APPS_UROCED_CONFIG_H
#define APPS_UROCED_CONFIG_H

#include "apps/options.h"

/*
 * Stores the options of the file that the command line (t->given) does not have. Returns
 * OPTIONS_OK, or another value and one line in t->why, which names the file and, if there is one,
 * the line.
 */
int config_read(struct option_table *t, const char *path);

#endif
