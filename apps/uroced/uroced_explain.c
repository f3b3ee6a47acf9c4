/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_explain.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmdline_parse_string.h>

#define CHOICES_MOST 64
#define WORD_MOST    (STR_TOKEN_SIZE - 2) /* characters of any word, for rte_cmdline */

/* What may stand at one place of a line. */
struct choices {
	struct {
		const char *text;
		int length;
	} choice[CHOICES_MOST];
	uint32_t count;
	bool any; /* one of the choices stands for any word */
};

static const char *skip(const char *line)
{
	return line + strspn(line, " \t");
}

static int word_length(const char *word)
{
	int n = 0;

	while (!cmdline_isendoftoken(word[n]))
		n++;
	return n;
}

static bool is_words(const cmdline_parse_inst_t *command)
{
	return command->tokens[0]->ops == &cmdline_token_string_ops;
}

/* How many words of the line are those of the command; *at: behind them. */
static uint32_t follow(const cmdline_parse_inst_t *command, const char **at)
{
	uint32_t n = 0;
	int length;

	*at = skip(*at);
	while (command->tokens[n] != NULL && !cmdline_isendoftoken(**at) &&
	       (length = cmdline_parse_string(command->tokens[n], *at, NULL, 0)) > 0) {
		*at = skip(*at + length);
		n++;
	}
	return n;
}

static void add(struct choices *c, const char *text, int length)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (c->choice[i].length == length &&
		    memcmp(c->choice[i].text, text, (size_t)length) == 0)
			return;
	if (c->count == CHOICES_MOST)
		return;
	c->choice[c->count].text = text;
	c->choice[c->count++].length = length;
}

/* What the help calls the word: QPN in "start tx ADDRESS QPN: send ..." */
static void add_named(struct choices *c, const char *help, uint32_t number)
{
	while (number-- > 0)
		help = skip(help + strcspn(help, " :"));
	add(c, help, (int)strcspn(help, " :"));
	c->any = true;
}

static void add_token(struct choices *c, const cmdline_parse_inst_t *command, uint32_t number)
{
	const void *token = command->tokens[number];
	const char *text;

	if (token == NULL)
		return;
	text = ((const cmdline_parse_token_string_t *)token)->string_data.str;
	if (text == NULL) {
		add_named(c, command->help_str, number);
		return;
	}
	for (; *text != '\0'; text += *text == '#') {
		int length = (int)strcspn(text, "#");

		add(c, text, length);
		text += length;
	}
}

/* "a, b or c" */
static void list(const struct choices *c, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < c->count && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%.*s",
				      i == 0		 ? ""
				      : i + 1 < c->count ? ", "
							 : " or ",
				      c->choice[i].length, c->choice[i].text);
}

/* The words of the line up to `at`, without what is behind. */
static int length_before(const char *line, const char *at)
{
	while (at > line && (at[-1] == ' ' || at[-1] == '\t'))
		at--;
	return (int)(at - line);
}

static void say(const struct choices *c, const char *line, const char *at, char *why, size_t size)
{
	char accepted[320];
	int word = word_length(at), before = length_before(line, at);

	list(c, accepted, sizeof(accepted));
	if (before == 0)
		snprintf(why, size, "%.*s: must be %s (`help` lists all commands)",
			 word < 40 ? word : 40, at, accepted);
	else if (word == 0)
		snprintf(why, size, "%.*s: one more word is needed: %s", before, line, accepted);
	else if (c->count == 0)
		snprintf(why, size, "%.*s %.*s: nothing may follow `%.*s`", before, line,
			 word < 40 ? word : 40, at, before, line);
	else if (c->any && word > WORD_MOST)
		snprintf(why, size, "%.*s %.40s...: %s must have at most %d characters", before,
			 line, at, accepted, WORD_MOST);
	else
		snprintf(why, size, "%.*s %.*s: must be %s", before, line, word < 40 ? word : 40,
			 at, accepted);
}

static bool is_whole(const cmdline_parse_inst_t *command, uint32_t n, const char *at)
{
	return n > 0 && command->tokens[n] == NULL && cmdline_isendoftoken(*at);
}

const cmdline_parse_inst_t *explain_command(cmdline_parse_ctx_t *commands, const char *line)
{
	for (cmdline_parse_ctx_t *i = commands; *i != NULL; i++) {
		const char *at = line;
		uint32_t n = is_words(*i) ? follow(*i, &at) : 0;

		if (is_whole(*i, n, at))
			return *i;
	}
	return NULL;
}

bool explain_line(cmdline_parse_ctx_t *commands, const char *line, char *why, size_t why_size)
{
	struct choices c = { .count = 0 };
	const char *furthest;
	uint32_t most = 0;

	line = furthest = skip(line);
	if (cmdline_isendoftoken(*line))
		return false;
	for (cmdline_parse_ctx_t *i = commands; *i != NULL; i++) {
		const char *at = line;
		uint32_t n = is_words(*i) ? follow(*i, &at) : 0;

		if (is_whole(*i, n, at))
			return false;
		if (n > most) {
			most = n;
			furthest = at;
		}
	}
	for (cmdline_parse_ctx_t *i = commands; *i != NULL; i++) {
		const char *at = line;

		if (is_words(*i) && follow(*i, &at) == most)
			add_token(&c, *i, most);
	}
	say(&c, line, furthest, why, why_size);
	return true;
}
