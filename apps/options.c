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
#include "output.h"

#define FIRST_ROW 1000 /* what getopt returns for row 0; larger than any letter */

static int refuse(struct option_table *o, int how, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct option_table *o, int how, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(o->why, sizeof(o->why), format, args);
	va_end(args);
	return how;
}

int options_refuse(const char *command, const char *text)
{
	fprintf(stderr, "uroce %s: %s\n", command, text);
	return OPTIONS_USAGE;
}

/* ---- the table ---- */

static bool is_end(const struct option_row *row)
{
	return row->name == NULL && row->letter == 0;
}

const struct option_row *options_find(const struct option_row *rows, const char *name,
				      size_t length, uint32_t *number)
{
	for (uint32_t i = 0; !is_end(&rows[i]); i++)
		if (rows[i].name != NULL && strlen(rows[i].name) == length &&
		    memcmp(rows[i].name, name, length) == 0) {
			*number = i;
			return &rows[i];
		}
	return NULL;
}

/* ---- values ---- */

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

static int read_number(struct option_table *o, const struct option_row *row, const char *value)
{
	uint64_t v;

	if (!whole_number(value, &v) || v < row->least || v > row->most)
		return refuse(o, OPTIONS_USAGE, "--%s %s: must be in %" PRIu64 " .. %" PRIu64,
			      row->name, value, row->least, row->most);
	if (row->u16 != NULL)
		*row->u16 = (uint16_t)v;
	else if (row->u32 != NULL)
		*row->u32 = (uint32_t)v;
	else
		*row->u64 = v;
	return OPTIONS_OK;
}

static int read_real(struct option_table *o, const struct option_row *row, const char *value)
{
	char *end;
	double v = strtod(value, &end);

	if (end == value || *end != '\0' || !(v >= row->from && v <= row->to))
		return refuse(o, OPTIONS_USAGE, "--%s %s: must be in %.15g .. %.15g", row->name,
			      value, row->from, row->to);
	*row->real = v;
	return OPTIONS_OK;
}

static int read_text(struct option_table *o, const struct option_row *row, const char *value)
{
	*row->text = value;
	return *value != '\0' ? OPTIONS_OK
			      : refuse(o, OPTIONS_USAGE, "--%s '': must not be empty", row->name);
}

static int read_name(struct option_table *o, const struct option_row *row, const char *value)
{
	if (value[0] == '\0' || strlen(value) >= row->size)
		return refuse(o, OPTIONS_USAGE, "--%s '%s': must have 1 to %zu characters",
			      row->name, value, row->size - 1);
	memcpy(row->name_of, value, strlen(value) + 1);
	return OPTIONS_OK;
}

static int read_value(struct option_table *o, const struct option_row *row, const char *value)
{
	const char *wrong;

	if (row->u16 != NULL || row->u32 != NULL || row->u64 != NULL)
		return read_number(o, row, value);
	if (row->real != NULL)
		return read_real(o, row, value);
	if (row->text != NULL)
		return read_text(o, row, value);
	if (row->name_of != NULL)
		return read_name(o, row, value);
	wrong = row->read(row->into, value);
	return wrong == NULL ? OPTIONS_OK
			     : refuse(o, OPTIONS_USAGE, "--%s %s: %s", row->name, value, wrong);
}

int options_value(struct option_table *o, uint32_t number, const char *value)
{
	const struct option_row *row = &o->rows[number];

	if (o->once && (o->given & 1u << number))
		return refuse(o, OPTIONS_USAGE, "--%s is given twice", row->name);
	o->given |= 1u << number;
	return read_value(o, row, value);
}

/* ---- words ---- */

/* A table in getopt's form. */
struct for_getopt {
	struct option names[OPTIONS_MOST + 2];
	char letters[2 * OPTIONS_MOST + 8];
};

static void tell_getopt(struct for_getopt *g, const struct option_row *rows)
{
	struct option *name = g->names;
	char *letter;

	memset(g, 0, sizeof(*g));
	/*
	 * '+': options end at the first word that is not one; ':': a missing value is reported here
	 */
	letter = stpcpy(g->letters, "+:h");
	for (int n = 0; !is_end(&rows[n]); n++) {
		int takes = rows[n].flag != NULL	? no_argument
			    : rows[n].otherwise != NULL ? optional_argument
							: required_argument;

		assert(n < OPTIONS_MOST);
		if (rows[n].name != NULL)
			*name++ = (struct option){ rows[n].name, takes, NULL, FIRST_ROW + n };
		if (rows[n].letter != 0) {
			*letter++ = rows[n].letter;
			for (int colons = 0; colons < takes; colons++)
				*letter++ = ':';
		}
	}
	*name = (struct option){ "help", no_argument, NULL, 'h' };
}

static uint32_t row_of(const struct option_row *rows, int c)
{
	uint32_t n = 0;

	if (c >= FIRST_ROW)
		return (uint32_t)(c - FIRST_ROW);
	while (rows[n].letter != c)
		n++;
	return n;
}

static int refuse_word(struct option_table *o, int c, const char *word)
{
	if (c == ':')
		return refuse(o, OPTIONS_USAGE, "%s needs a value", word);
	if (optopt >= FIRST_ROW || strncmp(word, "--help=", 7) == 0)
		return refuse(o, OPTIONS_USAGE, "%s: %.*s takes no value", word,
			      (int)strcspn(word, "="), word);
	if (optopt != 0)
		return refuse(o, OPTIONS_USAGE, "'-%c' is not an option (%s --help)", optopt,
			      o->program);
	return refuse(o, OPTIONS_USAGE, "'%s' is not an option (%s --help)", word, o->program);
}

static int read_one(struct option_table *o, int c, char **argv)
{
	uint32_t number;

	if (c == 'h')
		return OPTIONS_HELP;
	if (c == ':' || c == '?')
		return refuse_word(o, c, argv[optind - 1]);
	number = row_of(o->rows, c);
	if (o->rows[number].flag == NULL)
		return options_value(o, number,
				     optarg != NULL ? optarg : o->rows[number].otherwise);
	o->given |= 1u << number;
	*o->rows[number].flag = true;
	return OPTIONS_OK;
}

int options_words(struct option_table *o, int argc, char **argv, int *rest)
{
	struct for_getopt g;
	int c, status;

	tell_getopt(&g, o->rows);
	optind = 0; /* glibc: another argv */
	opterr = 0;
	while ((c = getopt_long(argc, argv, g.letters, g.names, NULL)) != -1) {
		status = read_one(o, c, argv);
		if (status != OPTIONS_OK)
			return status;
	}
	if (rest != NULL)
		*rest = optind;
	else if (optind < argc)
		return refuse(o, OPTIONS_USAGE, "'%s' is not an option (%s --help)", argv[optind],
			      o->program);
	return OPTIONS_OK;
}

bool options_read(const char *command, const char *help, const struct option_row *rows, int argc,
		  char **argv, int *rest, int *status)
{
	char program[64];
	struct option_table o = { .program = program, .rows = rows };
	int result;

	snprintf(program, sizeof(program), "uroce %s", command);
	result = options_words(&o, argc, argv, rest);
	if (result == OPTIONS_HELP) {
		fputs(help, stdout);
		*status = output_status(program);
		return false;
	}
	*status = result == OPTIONS_OK ? EXIT_DONE : EXIT_USAGE;
	if (result != OPTIONS_OK)
		fprintf(stderr, "%s: %s\n", program, o.why);
	return result == OPTIONS_OK;
}

static bool one_word(const char *command, const char *name, const char *noun, const char *word,
		     const char *other)
{
	if (word == NULL)
		fprintf(stderr, "uroce %s: no %s given: uroce %s %s\n", command, noun, command,
			name);
	else if (word[0] == '\0')
		fprintf(stderr, "uroce %s: %s '': must not be empty\n", command, name);
	else if (other != NULL)
		fprintf(stderr, "uroce %s: more than one %s given: '%s' and '%s'\n", command, noun,
			word, other);
	else
		return true;
	return false;
}

bool options_read_word(const char *command, const char *help, const struct option_row *rows,
		       int argc, char **argv, const char *name, const char *noun, const char **word,
		       int *status)
{
	int rest, behind;

	if (!options_read(command, help, rows, argc, argv, &rest, status))
		return false;
	*word = rest < argc ? argv[rest] : NULL;
	behind = argc - rest;
	if (*word != NULL &&
	    !options_read(command, help, rows, argc - rest, argv + rest, &behind, status))
		return false;
	if (one_word(command, name, noun, *word, rest + behind < argc ? argv[rest + behind] : NULL))
		return true;
	*status = EXIT_USAGE;
	return false;
}
