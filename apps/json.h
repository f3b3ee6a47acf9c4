/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes JSON one value at a time: json_open(&j, NULL, '{'), members, json_close(&j, '}'). Pass a
 * key inside an object and NULL inside an array. A newline follows the outermost bracket.
 */
#ifndef APPS_JSON_H
#define APPS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	int depth;
	bool more; /* this bracket is not empty */
};

void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_string(struct json *j, const char *key, const char *text);
void json_number(struct json *j, const char *key, double v); /* six digits; null if not finite */
void json_integer(struct json *j, const char *key, uint64_t v);
void json_bool(struct json *j, const char *key, bool v);

#endif
