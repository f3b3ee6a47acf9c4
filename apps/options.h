/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words behind `uroce COMMAND`, read alike for every command: a table says what an option is
 * called and where its value goes. What cannot be is refused by one line on stderr that names the
 * command, the option, what was given and what may be given. The last of two equal options counts.
 */
#ifndef APPS_OPTIONS_H
#define APPS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_MOST 31 /* rows of a table, the end not counted */

/* A row has one place for its value: which one says what the value is. */
struct option_row {
	const char *name; /* without its dashes; NULL: the end of the table */
	char letter; /* its short form; 0: none */

	bool *flag; /* takes no value: becomes true */
	const char **text; /* not empty; points into argv */
	uint32_t *u32; /* least .. most */
	uint64_t *u64;
	double *real; /* from .. to */
	/* NULL, or what the value is not: "is not ..." */
	const char *(*read)(void *into, const char *value);
	void *into;

	uint64_t least, most;
	double from, to;
};

/*
 * Reads argv[1 ..]. --help and -h, which need no row, print `help`. With `rest` NULL every word is
 * an option; else the options end at the first word that is none, and *rest is its index (argc:
 * there is none). False: there is nothing to do but to leave with *status.
 */
bool options_read(const char *command, const char *help, const struct option_row *rows, int argc,
		  char **argv, int *rest, int *status);

#endif
