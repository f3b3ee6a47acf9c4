/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmdline_socket.h>

#include "base/bits.h"
#include "uroced_commands.h"
#include "uroced_explain.h"

#define LINE_MOST     512 /* octets of a line of a file, its end counted; rte_cmdline's own limit */
#define COMMANDS_MOST 64

struct console_state console;

static struct cmdline *terminal; /* NULL: standard input is not read */
static struct cmdline *script; /* for files: reads nothing by itself */
static cmdline_parse_ctx_t context[COMMANDS_MOST];

void console_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(console.failed, sizeof(console.failed), format, args);
	va_end(args);
	if (!console.from_file)
		printf("%s\n", console.failed);
}

/* ---- help, quit ---- */

static uint32_t print_group(const char *word)
{
	uint32_t n = 0;

	for (const cmdline_parse_ctx_t *c = context; *c != NULL; c++) {
		const char *text = (*c)->help_str;

		if (text == NULL)
			continue;
		if (word != NULL && (strncmp(text, word, strlen(word)) != 0 ||
				     strchr(" :", text[strlen(word)]) == NULL))
			continue;
		printf("  %s\n", text);
		n++;
	}
	return n;
}

static void help(void *parsed, struct cmdline *cl, void *data)
{
	puts("Commands, each with what it does. The tabulator key completes a word, ? shows what may "
	     "follow.\n");
	print_group(NULL);
}

static void help_group(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;

	if (print_group(w->word[1]) == 0)
		console_fail("help %s: no command begins with that; `help` lists all", w->word[1]);
}

static void quit(void *parsed, struct cmdline *cl, void *data)
{
	console.quit = true;
	cmdline_quit(cl);
}

WORD(help_word, 0, "help");
WORD(group_word, 1, ANY_WORD);
WORD(quit_word, 0, "quit");

static cmdline_parse_inst_t help_command = { .f = help,
					     .help_str = "help: list all commands",
					     .tokens = { (void *)&help_word, NULL } };
static cmdline_parse_inst_t help_group_command = {
	.f = help_group,
	.help_str = "help WORD: list the commands that begin with this word",
	.tokens = { (void *)&help_word, (void *)&group_word, NULL },
};
static cmdline_parse_inst_t quit_command = { .f = quit,
					     .help_str = "quit: end the engine",
					     .tokens = { (void *)&quit_word, NULL } };

/* ---- what is no command ---- */

/*
 * Takes each line that no other command takes, because rte_cmdline would answer "Bad arguments". It
 * is not in the table when words are completed: then there is no place for a result.
 */
static int take_wrong_line(cmdline_parse_token_hdr_t *token, const char *line, void *why,
			   unsigned int size)
{
	if (why == NULL || !explain_line(context, line, why, size))
		return -1;
	return (int)strcspn(line, "#\r\n"); /* all of it */
}

static int one_choice(cmdline_parse_token_hdr_t *token)
{
	return 1;
}

static int no_choice(cmdline_parse_token_hdr_t *token, int i, char *text, unsigned int size)
{
	return -1;
}

static void refuse_line(void *why, struct cmdline *cl, void *data)
{
	console_fail("%s", (const char *)why);
}

static struct cmdline_token_ops wrong_line_ops = {
	.parse = take_wrong_line,
	.complete_get_nb = one_choice,
	.complete_get_elt = no_choice,
};
static cmdline_parse_token_hdr_t wrong_line = { .ops = &wrong_line_ops };
static cmdline_parse_inst_t wrong_line_command = { .f = refuse_line,
						   .tokens = { &wrong_line, NULL } };

static cmdline_parse_inst_t *const own_commands[] = { &help_command, &help_group_command,
						      &quit_command, &wrong_line_command, NULL };

static cmdline_parse_inst_t *const *const all[] = { show_commands,    clear_commands,
						    set_commands,     impair_commands,
						    capture_commands, traffic_commands,
						    trace_commands,   own_commands };

/* ---- the line ---- */

static void add_commands(void)
{
	uint32_t n = 0;

	for (size_t g = 0; g < ARRAY_SIZE(all); g++)
		for (cmdline_parse_inst_t *const *c = all[g]; *c != NULL && n + 1 < COMMANDS_MOST;
		     c++)
			context[n++] = *c;
	context[n] = NULL;
}

bool console_open(struct uroce_engine *e, struct uroced_options *o)
{
	console = (struct console_state){ .engine = e, .options = o };
	add_commands();
	/* rte_cmdline writes the prompt past stdio. */
	setlinebuf(stdout);
	script = cmdline_new(context, "", -1, STDOUT_FILENO);
	return script != NULL;
}

bool console_attach(void)
{
	terminal = cmdline_stdin_new(context, "uroced> ");
	return terminal != NULL;
}

bool console_input(void)
{
	int status = cmdline_poll(terminal);

	return status >= 0 && status != RDLINE_EXITED && !console.quit;
}

bool console_wants_end(void)
{
	return console.quit;
}

void console_close(void)
{
	console_traffic_close();
	console_capture_close();
	console_clear_close();
	if (terminal != NULL)
		cmdline_stdin_exit(terminal);
	cmdline_free(script);
	terminal = script = NULL;
}

/* ---- files ---- */

/* Calls console_fail() if the line is a command that does not take its values. */
static void check_values(const char *line)
{
	const cmdline_parse_inst_t *command = explain_command(context, line);
	const struct values *values = command == NULL ? NULL : command->data;
	struct words w;

	if (values == NULL)
		return;
	for (uint32_t n = 0; command->tokens[n] != NULL; n++) {
		line += strspn(line, " \t");
		line += cmdline_parse_string(command->tokens[n], line, w.word[n],
					     sizeof(w.word[n]));
	}
	values->right(&w);
}

/* A line of the file; `execute`: or it is only checked. Returns what is wrong, or NULL. */
static const char *take_line(char *line, bool execute)
{
	size_t n = strcspn(line, "\n");

	if (n + 2 > LINE_MOST)
		return "the line is too long";
	strcpy(line + n, "\n"); /* the last one may have none */
	console.failed[0] = '\0';
	if (execute)
		cmdline_parse(script, line);
	else if (!explain_line(context, line, console.failed, sizeof(console.failed)))
		check_values(line);
	return console.failed[0] != '\0' ? console.failed : NULL;
}

static int take_lines(FILE *f, const char *path, bool execute, char *why, size_t why_size)
{
	char line[LINE_MOST + 1];
	uint32_t number = 0;

	rewind(f);
	while (!console.quit && fgets(line, LINE_MOST, f) != NULL) {
		const char *wrong = take_line(line, execute);

		number++;
		if (wrong == NULL)
			continue;
		if (wrong == console.failed) /* it begins with its command */
			snprintf(why, why_size, "%s:%u: %s", path, number, wrong);
		else
			snprintf(why, why_size, "%s:%u: %.*s: %s", path, number,
				 (int)strcspn(line, "\n"), line, wrong);
		return execute ? 1 : OPTIONS_USAGE;
	}
	return 0;
}

/* Returns what is wrong with the open file, or NULL. */
static const char *unfit(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return strerror(EISDIR);
	/* take_lines() reads it twice */
	return lseek(fd, 0, SEEK_CUR) < 0 ? "must be a file, not a pipe" : NULL;
}

int console_check_file(const char *path, char *why, size_t why_size)
{
	/* O_NONBLOCK: a FIFO without a writer is refused, too */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *wrong = fd < 0 ? strerror(errno) : unfit(fd);

	if (fd >= 0)
		close(fd);
	if (wrong == NULL)
		return 0;
	snprintf(why, why_size, "--cmdline-file %.300s: %s", path, wrong);
	return OPTIONS_USAGE;
}

int console_run_file(const char *path, char *why, size_t why_size)
{
	FILE *f = fopen(path, "re");
	int status;

	if (f == NULL) {
		snprintf(why, why_size, "--cmdline-file %s: %s", path, strerror(errno));
		return OPTIONS_USAGE;
	}
	console.from_file = true;
	status = take_lines(f, path, false, why, why_size);
	if (status == 0)
		status = take_lines(f, path, true, why, why_size);
	console.from_file = false;
	fclose(f);
	return status;
}
