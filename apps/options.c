/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

#define FIRST_ROW 1000 /* what getopt calls row 0: no letter has this number */

static int refuse(const char *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(const char *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "uroce %s: ", command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

/* 0x before hexadecimal digits. strtoull alone takes a sign, and 010 for eight. */
static bool whole_number(const char *text, uint64_t *v)
{
	int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*v = strtoull(text, &end, base);
	return errno == 0 && *end == '\0';
}

static int read_number(const char *command, const struct option_row *row, const char *value)
{
	uint64_t v;

	if (!whole_number(value, &v) || v < row->least || v > row->most)
		return refuse(command, "--%s %s: is not in %" PRIu64 " .. %" PRIu64, row->name,
			      value, row->least, row->most);
	if (row->u32 != NULL)
		*row->u32 = (uint32_t)v;
	else
		*row->u64 = v;
	return EXIT_DONE;
}

static int read_real(const char *command, const struct option_row *row, const char *value)
{
	char *end;
	double v = strtod(value, &end);

	if (end == value || *end != '\0' || !(v >= row->from && v <= row->to))
		return refuse(command, "--%s %s: is not in %.15g .. %.15g", row->name, value,
			      row->from, row->to);
	*row->real = v;
	return EXIT_DONE;
}

static int read_value(const char *command, const struct option_row *row, const char *value)
{
	const char *wrong;

	if (row->u32 != NULL || row->u64 != NULL)
		return read_number(command, row, value);
	if (row->real != NULL)
		return read_real(command, row, value);
	if (row->text != NULL) {
		*row->text = value;
		return *value != '\0' ? EXIT_DONE : refuse(command, "--%s '': is empty", row->name);
	}
	wrong = row->read(row->into, value);
	return wrong == NULL ? EXIT_DONE : refuse(command, "--%s %s: %s", row->name, value, wrong);
}

/* What getopt knows of a table. */
struct for_getopt {
	struct option names[OPTIONS_MOST + 2];
	char letters[2 * OPTIONS_MOST + 8];
};

static void tell_getopt(struct for_getopt *g, const struct option_row *rows)
{
	int n = 0;
	char *letter;

	memset(g, 0, sizeof(*g));
	/* the options end at a word that is none; a value that is missing is a ':', and we say so */
	letter = stpcpy(g->letters, "+:h");
	for (; rows[n].name != NULL; n++) {
		int takes = rows[n].flag != NULL ? no_argument : required_argument;

		assert(n < OPTIONS_MOST);
		g->names[n] = (struct option){ rows[n].name, takes, NULL, FIRST_ROW + n };
		if (rows[n].letter != 0) {
			*letter++ = rows[n].letter;
			if (takes == required_argument)
				*letter++ = ':';
		}
	}
	g->names[n] = (struct option){ "help", no_argument, NULL, 'h' };
}

static const struct option_row *row_of(const struct option_row *rows, int c)
{
	if (c >= FIRST_ROW)
		return &rows[c - FIRST_ROW];
	for (; rows->name != NULL; rows++)
		if (rows->letter == c)
			return rows;
	return NULL;
}

static int refuse_word(const char *command, int c, const char *word)
{
	if (c == ':')
		return refuse(command, "%s needs a value", word);
	if (optopt >= FIRST_ROW || strncmp(word, "--help=", 7) == 0)
		return refuse(command, "%s: %.*s takes no value", word, (int)strcspn(word, "="),
			      word);
	if (optopt != 0)
		return refuse(command, "'-%c' is not an option (uroce %s --help)", optopt, command);
	return refuse(command, "'%s' is not an option (uroce %s --help)", word, command);
}

static int read_one(const char *command, const struct option_row *rows, int c, char **argv)
{
	const struct option_row *row;

	if (c == ':' || c == '?')
		return refuse_word(command, c, argv[optind - 1]);
	row = row_of(rows, c);
	if (row->flag == NULL)
		return read_value(command, row, optarg);
	*row->flag = true;
	return EXIT_DONE;
}

bool options_read(const char *command, const char *help, const struct option_row *rows, int argc,
		  char **argv, int *rest, int *status)
{
	struct for_getopt g;
	int c;

	tell_getopt(&g, rows);
	optind = 1;
	opterr = 0;
	*status = EXIT_DONE;
	while ((c = getopt_long(argc, argv, g.letters, g.names, NULL)) != -1) {
		if (c == 'h') {
			*status = fputs(help, stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILED
										 : EXIT_DONE;
			return false;
		}
		*status = read_one(command, rows, c, argv);
		if (*status != EXIT_DONE)
			return false;
	}
	if (rest != NULL)
		*rest = optind;
	else if (optind < argc)
		*status = refuse(command, "'%s' is not an option (uroce %s --help)", argv[optind],
				 command);
	return *status == EXIT_DONE;
}
