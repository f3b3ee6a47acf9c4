/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

Test(json, nesting_commas_and_escapes)
{
	char *text = NULL;
	size_t size = 0;
	struct json j = { .out = open_memstream(&text, &size) };

	json_open(&j, NULL, '{');
	json_string(&j, "a", "x\"y\\z\n");
	json_open(&j, "list", '[');
	json_integer(&j, NULL, 18446744073709551615ull);
	json_number(&j, NULL, 0.25);
	json_open(&j, NULL, '{');
	json_close(&j, '}');
	json_close(&j, ']');
	json_bool(&j, "yes", true);
	json_number(&j, "bad", NAN);
	json_close(&j, '}');
	fclose(j.out);
	cr_assert_str_eq(text, "{\"a\": \"x\\\"y\\\\z\\u000a\", \"list\": [18446744073709551615, "
			       "0.25, {}], \"yes\": true, \"bad\": null}\n");
	free(text);
}
