/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of an engine's objects, as tables for people or as JSON. */
#ifndef APPS_LISTS_H
#define APPS_LISTS_H

#include <stdbool.h>
#include <stdio.h>

#include "locate.h"

enum list_of {
	LIST_QPS,
	LIST_MEMORY,
	LIST_PROGRAMS,
	LIST_NEIGHBOURS,
	LIST_PATHS,
};

/*
 * Prints what the engine at the other end of this socket (engine_connect) shows its user: a head and
 * a line each, or a JSON array. 0, or an errno and `why`; some lines may have been printed then.
 */
int list_print(FILE *out, int fd, enum list_of what, bool as_json, char *why, size_t why_size);

/* The same on stdout, of entries as since() leaves them. */
int list_print_since(int fd, enum list_of what, void (*since)(void *entry), char *why,
		     size_t why_size);

/*
 * Calls `row` for each entry (a struct listed_qp, ...), in parts of the list as they come. 0, or an
 * errno and `why`.
 */
int list_walk(int fd, enum list_of what, void (*row)(void *arg, const void *entry), void *arg,
	      char *why, size_t why_size);
/* Calls `field` for each column of an entry; a number's text may be hexadecimal. */
void list_fields(enum list_of what, const void *entry,
		 void (*field)(void *arg, const char *key, const char *text, bool number),
		 void *arg);

/* For other pages: "RC", "RTS". */
const char *qp_type_name(uint8_t type);
const char *qp_state_name(uint8_t state);

#endif
