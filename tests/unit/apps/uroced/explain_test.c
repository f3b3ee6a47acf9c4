/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt's answers to wrong commands: which word is wrong, and which words are allowed. */
#include <criterion/criterion.h>
#include <string.h>

#include <cmdline_parse_string.h>

#include "apps/uroced/uroced_explain.h"
#include "base/bits.h"

struct words {
	cmdline_fixed_string_t word[5];
};

#define WORD(name, index, text)                    \
	static cmdline_parse_token_string_t name = \
		TOKEN_STRING_INITIALIZER(struct words, word[index], text)

WORD(show, 0, "show");
WORD(config, 1, "config");
WORD(port, 1, "port");
WORD(set, 0, "set");
WORD(idle, 1, "idle");
WORD(mode, 2, "spin#adaptive");
WORD(log_word, 1, "log");
WORD(level, 2, "error#info");
WORD(type, 2, NULL);
WORD(type_level, 3, "error#info");
WORD(capture, 0, "capture");
WORD(start, 1, "start");
WORD(stop, 1, "stop");
WORD(file, 2, NULL);

static cmdline_parse_inst_t show_config = { .help_str = "show config: the options",
					    .tokens = { (void *)&show, (void *)&config, NULL } };
static cmdline_parse_inst_t show_port = { .help_str = "show port: the port",
					  .tokens = { (void *)&show, (void *)&port, NULL } };
static cmdline_parse_inst_t set_idle = {
	.help_str = "set idle spin|adaptive: how",
	.tokens = { (void *)&set, (void *)&idle, (void *)&mode, NULL },
};
static cmdline_parse_inst_t set_log = {
	.help_str = "set log LEVEL: how much",
	.tokens = { (void *)&set, (void *)&log_word, (void *)&level, NULL },
};
static cmdline_parse_inst_t set_log_type = {
	.help_str = "set log TYPE LEVEL: how much",
	.tokens = { (void *)&set, (void *)&log_word, (void *)&type, (void *)&type_level, NULL },
};
static cmdline_parse_inst_t capture_start = {
	.help_str = "capture start FILE: frames",
	.tokens = { (void *)&capture, (void *)&start, (void *)&file, NULL },
};
static cmdline_parse_inst_t capture_stop = {
	.help_str = "capture stop: no more",
	.tokens = { (void *)&capture, (void *)&stop, NULL },
};

static int take_nothing(cmdline_parse_token_hdr_t *token, const char *line, void *result,
			unsigned int size)
{
	return -1;
}

/* A command that does not consist of words. */
static struct cmdline_token_ops other_ops = { .parse = take_nothing };
static cmdline_parse_token_hdr_t other_token = { .ops = &other_ops };
static cmdline_parse_inst_t other = { .tokens = { &other_token, NULL } };

static cmdline_parse_ctx_t commands[] = { &show_config, &show_port,    &set_idle,
					  &set_log,	&set_log_type, &capture_start,
					  &other,	&capture_stop, NULL };

#define W10  "0123456789"
#define W126 W10 W10 W10 W10 W10 W10 W10 W10 W10 W10 W10 W10 "012345"

/* NULL: the line is correct. */
static const struct {
	const char *line, *says;
} table[] = {
	{ "", NULL },
	{ " \t\n", NULL },
	{ "# show nothing\n", NULL },
	{ "show config\n", NULL },
	{ "\tshow   config # the options\n", NULL },
	{ "set log info", NULL },
	{ "set log lib.eal info\r\n", NULL },
	{ "capture start " W126 "\n", NULL },
	{ "nonsense\n", "nonsense: must be show, set or capture (`help` lists all commands)" },
	{ "SHOW config\n", "SHOW: must be show, set or capture (`help` lists all commands)" },
	{ "sho\n", "sho: must be show, set or capture (`help` lists all commands)" },
	{ "show\n", "show: one more word is needed: config or port" },
	{ " show \n", "show: one more word is needed: config or port" },
	{ "show # config\n", "show: one more word is needed: config or port" },
	{ "show  ports\n", "show ports: must be config or port" },
	{ "show config more\n", "show config more: nothing may follow `show config`" },
	{ "set idle\n", "set idle: one more word is needed: spin or adaptive" },
	{ "set idle often\n", "set idle often: must be spin or adaptive" },
	{ "set idle often now\n", "set idle often: must be spin or adaptive" },
	{ "set log\n", "set log: one more word is needed: error, info or TYPE" },
	{ "set log loud\n", "set log loud: one more word is needed: error or info" },
	{ "set log lib.eal loud\n", "set log lib.eal loud: must be error or info" },
	{ "capture start\n", "capture start: one more word is needed: FILE" },
	{ "capture start a b\n", "capture start a b: nothing may follow `capture start a`" },
	{ "capture start x" W126 "\n", "capture start x" W10 W10 W10 "012345678...: FILE must "
				       "have at most 126 characters" },
};

Test(explain, one_line_names_the_word_and_what_may_stand_there)
{
	char why[512];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		bool wrong = explain_line(commands, table[i].line, why, sizeof(why));

		cr_expect_eq(wrong, table[i].says != NULL, "row %zu: %s", i, why);
		if (wrong && table[i].says != NULL)
			cr_expect_str_eq(why, table[i].says, "row %zu: %s", i, why);
	}
}

/* Any line that a terminal or a file may have; also under a sanitizer. */
Test(explain, any_octets)
{
	static const char *const parts[] = {
		"show", "set", "log",  "capture", "start", " ", "\t",
		"#",	"\r",  "\xff", W126,	  "x",	   "",	"lib.*"
	};
	uint32_t seed = 1;
	char line[512], why[512];

	for (int i = 0; i < 20000; i++) {
		size_t n = 0;

		for (line[0] = '\0'; (seed >> 16) % 9 != 0 && n < 300; n = strlen(line)) {
			seed = seed * 1103515245 + 12345;
			strcpy(line + n, parts[(seed >> 16) % ARRAY_SIZE(parts)]);
			if ((seed >> 24) % 2 == 0)
				strcat(line, " ");
		}
		seed = seed * 1103515245 + 12345;
		if (explain_line(commands, line, why, sizeof(why)))
			cr_assert_null(strpbrk(why, "\r\n"), "one line: %s", why);
	}
}

Test(explain, it_fits_where_it_is_wanted)
{
	char why[16];

	cr_assert(explain_line(commands, "show everything", why, sizeof(why)));
	cr_expect_str_eq(why, "show everything");
}
