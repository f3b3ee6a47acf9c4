/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of `uroce COMMAND` and of uroced, read alike: a table says what an option is called and
 * where its value goes. A wrong value is refused by one line that names the option, what was given
 * and what may be given.
 */
#ifndef APPS_OPTIONS_H
#define APPS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MOST 31 /* rows of a table, without its end */

enum {
	OPTIONS_OK = 0,
	/* no such option, a value or a file that cannot be, or two that contradict each other */
	OPTIONS_USAGE = 2,
	OPTIONS_HELP = 3, /* --help or -h, which need no row */
};

/* A row has one place for its value: which one says what the value is. */
struct option_row {
	const char *name; /* without its dashes; NULL: it has a letter only */
	char letter; /* its short form; 0: none. No name and no letter: the end of the table */

	bool *flag; /* takes no value: becomes true */
	const char **text; /* not empty; points into argv */
	char *name_of; /* a copy of a name, not empty, that fits into `size` octets */
	uint16_t *u16; /* least .. most */
	uint32_t *u32;
	uint64_t *u64;
	double *real; /* in from .. to */
	/* Returns NULL, or what the value must be: "must be ..." */
	const char *(*read)(void *into, const char *value);
	void *into;

	const char *otherwise; /* not NULL: the value may be missing, and is this one then */
	size_t size;
	uint64_t least, most;
	double from, to;
};

/* A table at work. */
struct option_table {
	const char *program; /* as a user types it: "uroce perf" */
	const struct option_row *rows;
	bool once; /* a value may be given once; otherwise the last of two counts */
	uint32_t given; /* bits of the rows that got a value */
	uint32_t line[OPTIONS_MOST]; /* of a file, in which a row got it; 0: on the command line */
	char why[512]; /* what is wrong, one line without its end */
};

/*
 * Reads argv[1 ..]. With `rest` NULL every word is an option; else the options end at the first word
 * that is none, and *rest is its index (argc: there is none). Returns one of the above.
 */
int options_words(struct option_table *o, int argc, char **argv, int *rest);

/* The row with exactly this name, and its number; NULL: there is none. */
const struct option_row *options_find(const struct option_row *rows, const char *name,
				      size_t length, uint32_t *number);
/* Stores the value, as if it had stood behind the option of this row. */
int options_value(struct option_table *o, uint32_t number, const char *value);

/*
 * options_words for `uroce COMMAND`: help goes to stdout, what is wrong to stderr. False: there is
 * nothing to do but to leave with *status.
 */
bool options_read(const char *command, const char *help, const struct option_row *rows, int argc,
		  char **argv, int *rest, int *status);

/*
 * ... with exactly one word among the options, not empty, which the usage calls `name` ("FILE") and a
 * sentence `noun` ("file").
 */
bool options_read_word(const char *command, const char *help, const struct option_row *rows,
		       int argc, char **argv, const char *name, const char *noun, const char **word,
		       int *status);

/* Prints "uroce COMMAND: TEXT" on stderr and returns the exit status of wrong usage. */
int options_refuse(const char *command, const char *text);

#endif
