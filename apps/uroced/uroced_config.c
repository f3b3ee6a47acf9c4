/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTION "[uroced]"
#define CONFIG	"config" /* names the file, and cannot occur in it */

struct config {
	struct option_table *table;
	const char *path;
	uint32_t line; /* its number, from 1 */
	uint32_t before; /* bits of the options that the command line has */
	bool inside; /* behind SECTION */
};

static int wrong(struct config *c, int how, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int wrong(struct config *c, int how, const char *format, ...)
{
	size_t room = sizeof(c->table->why);
	va_list args;
	int n;

	n = snprintf(c->table->why, room, "--config %.300s:%u: ", c->path, c->line);
	va_start(args, format);
	if (n > 0 && (size_t)n < room)
		vsnprintf(c->table->why + n, room - (size_t)n, format, args);
	va_end(args);
	return how;
}

/* Cuts white space off both ends, and a comment. */
static char *trim(char *text)
{
	char *end;

	for (char *c = text; *c != '\0'; c++)
		if (*c == '#' && (c == text || isspace((unsigned char)c[-1]))) {
			*c = '\0';
			break;
		}
	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

/* An option without a value on the command line is on or off here. */
static int take_flag(struct config *c, uint32_t number, const char *value)
{
	const struct option_row *row = &c->table->rows[number];

	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return wrong(c, OPTIONS_USAGE, "%s = %s: must be on or off", row->name, value);
	c->table->given |= 1u << number;
	if ((c->before & 1u << number) == 0)
		*row->flag = value[1] == 'n';
	return OPTIONS_OK;
}

static int take_value(struct config *c, uint32_t number, const char *value)
{
	char why[sizeof(c->table->why)];
	int status;

	if ((c->before & 1u << number) == 0)
		c->table->line[number] = c->line;
	if (c->table->rows[number].flag != NULL)
		return take_flag(c, number, value);
	if ((c->before & 1u << number) != 0)
		return OPTIONS_OK;
	status = options_value(c->table, number, value); /* a second one was refused above */
	if (status == OPTIONS_OK)
		return OPTIONS_OK;
	memcpy(why, c->table->why, sizeof(why));
	return wrong(c, status, "%s", why);
}

static int take_entry(struct config *c, char *text)
{
	char *equals = strchr(text, '=');
	const char *name, *value;
	uint32_t number;

	if (equals == NULL)
		return wrong(c, OPTIONS_USAGE, "'%.64s': must be 'name = value'", text);
	*equals = '\0';
	name = trim(text);
	value = trim(equals + 1);
	if (strcmp(name, CONFIG) == 0 ||
	    options_find(c->table->rows, name, strlen(name), &number) == NULL)
		return wrong(c, OPTIONS_USAGE, "'%.64s' is not an option of uroced", name);
	if ((c->table->given & ~c->before & 1u << number) != 0)
		return wrong(c, OPTIONS_USAGE, "%s is given twice", name);
	return take_value(c, number, value);
}

static int take_line(struct config *c, char *line)
{
	char *text = trim(line);

	if (*text == '\0')
		return OPTIONS_OK;
	if (*text == '[') {
		c->inside = strcmp(text, SECTION) == 0;
		return c->inside ? OPTIONS_OK
				 : wrong(c, OPTIONS_USAGE, "%.64s: the only section is " SECTION,
					 text);
	}
	if (!c->inside)
		return wrong(c, OPTIONS_USAGE, "'%.64s' stands before " SECTION, text);
	return take_entry(c, text);
}

int config_read(struct option_table *t, const char *path)
{
	struct config c = { .table = t, .path = path, .before = t->given };
	int status = OPTIONS_OK;
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "re");

	while (f != NULL && status == OPTIONS_OK && getline(&line, &size, f) >= 0) {
		c.line++;
		status = take_line(&c, line);
	}
	if (f == NULL || ferror(f)) {
		snprintf(t->why, sizeof(t->why), "--config %.300s: %s", path, strerror(errno));
		status = OPTIONS_USAGE;
	} else if (status == OPTIONS_OK && !c.inside) {
		snprintf(t->why, sizeof(t->why), "--config %.300s: has no section " SECTION, path);
		status = OPTIONS_USAGE;
	}
	free(line);
	if (f != NULL)
		fclose(f);
	return status;
}
