/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce: the first word chooses a command. Most commands are functions (commands.h). Those that
 * need DPDK are separate programs beside this one, so that `uroce run` starts in a millisecond.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "commands.h"
#include "output.h"
#include "program.h"

static const struct {
	const char *word;
	int (*run)(int argc, char **argv); /* NULL: the program uroce-WORD */
	const char *what;
} commands[] = {
	{ "run", command_run, "run an unmodified verbs program on an engine" },
	{ "stat", command_stat, "print an engine's counters" },
	{ "top", command_top, "show which programs and queue pairs are busy" },
	{ "capture", command_capture, "write an engine's frames into a file" },
	{ "trace", NULL, "print the packets of a queue pair" },
	{ "doctor", command_doctor, "find what this machine lacks for an engine" },
	{ "ping", NULL, "check that an engine carries data, and time it" },
	{ "perf", NULL, "measure an engine against this machine's limits" },
	{ "sim", NULL, "run the transport in virtual time over a bad network" },
};

static void usage(FILE *out)
{
	fputs("usage: uroce COMMAND [OPTIONS]\n\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-8s %s\n", commands[i].word, commands[i].what);
	fputs("\n'uroce COMMAND --help' lists its options. All commands but trace have --json.\n",
	      out);
}

static int unknown(const char *word)
{
	fprintf(stderr, "uroce: unknown command '%s': must be ", word);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(stderr, "%s%s",
			i == 0			       ? ""
			: i + 1 < ARRAY_SIZE(commands) ? ", "
						       : " or ",
			commands[i].word);
	fputs(" (uroce --help)\n", stderr);
	return EXIT_USAGE;
}

static int run_program(const char *word, char **argv)
{
	char name[32], path[PATH_MAX], why[PATH_MAX];

	snprintf(name, sizeof(name), "uroce-%s", word);
	if (own_program(name, path, why, sizeof(why)) != 0) {
		fprintf(stderr, "uroce %s: %s\n", word, why);
		return EXIT_FAILED;
	}
	execv(path, argv);
	fprintf(stderr, "uroce %s: %s: %s\n", word, path, strerror(errno));
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	output_keep_closed();
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(word, commands[i].word) == 0)
			return commands[i].run != NULL ? commands[i].run(argc - 1, argv + 1)
						       : run_program(word, argv + 1);
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		usage(stdout);
		return output_status("uroce");
	}
	if (strcmp(word, "--version") == 0) {
		puts("uroce " UROCE_VERSION);
		return output_status("uroce");
	}
	if (word[0] != '\0')
		return unknown(word);
	usage(stderr);
	return EXIT_USAGE;
}
