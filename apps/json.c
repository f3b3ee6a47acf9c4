/* SPDX-License-Identifier: BSD-3-Clause */
#include "json.h"

#include <inttypes.h>
#include <math.h>

static void quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void begin(struct json *j, const char *key)
{
	if (j->more)
		fputs(", ", j->out);
	j->more = true;
	if (key != NULL) {
		quoted(j->out, key);
		fputs(": ", j->out);
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	j->depth++;
	j->more = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->more = true;
	if (--j->depth == 0) {
		fputc('\n', j->out);
		j->more = false;
	}
}

void json_string(struct json *j, const char *key, const char *text)
{
	begin(j, key);
	quoted(j->out, text);
}

void json_number(struct json *j, const char *key, double v)
{
	begin(j, key);
	if (isfinite(v))
		fprintf(j->out, "%.6g", v);
	else
		fputs("null", j->out);
}

void json_integer(struct json *j, const char *key, uint64_t v)
{
	begin(j, key);
	fprintf(j->out, "%" PRIu64, v);
}

void json_bool(struct json *j, const char *key, bool v)
{
	begin(j, key);
	fputs(v ? "true" : "false", j->out);
}
