/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of `uroce`, one function each. argv[0] is the command's name. The result is the exit
 * status of the process: 0 success, 1 failure, 2 wrong usage.
 */
#ifndef APPS_COMMANDS_H
#define APPS_COMMANDS_H

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

int command_capture(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_run(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_top(int argc, char **argv);

#endif
