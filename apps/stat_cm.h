/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_STAT_CM_H
#define APPS_STAT_CM_H

#include "locate.h"

/*
 * Prints the connection manager's ids in an engine: one line each, or a JSON array. 0, or an errno
 * and `why`; some ids may have been printed then.
 */
int stat_cm(int fd, bool as_json, char *why, size_t why_size);
/* The lines, of ids as since() leaves them; NULL: as they are. */
int cm_print_since(int fd, void (*since)(struct cm_listed *id), char *why, size_t why_size);
/* Calls `row` for each id, which may change it. 0, or an errno and `why`. */
int cm_walk(int fd, void (*row)(void *arg, struct cm_listed *id), void *arg, char *why,
	    size_t why_size);

#endif
