/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that `uroce run` needs: the program to run, and our own libraries. */
#ifndef APPS_PROGRAM_H
#define APPS_PROGRAM_H

#include <limits.h>
#include <stddef.h>

enum {
	PROGRAM_NOT_RUNNABLE = 126, /* as in shells */
	PROGRAM_NOT_FOUND = 127,
};

/* Looks `name` up in PATH as execvp does. 0, or an exit status from above and `why`. */
int program_find(const char *name, char path[PATH_MAX], char *why, size_t why_size);

/*
 * Whether the program will load our libraries instead of the system's. It will not if it is setuid,
 * setgid or has file capabilities, because the loader then ignores LD_LIBRARY_PATH, nor if it is
 * statically linked. 0, or PROGRAM_NOT_RUNNABLE and `why`.
 */
int program_check(const char *path, char *why, size_t why_size);

/*
 * The folders of our libibverbs.so.1, librdmacm.so.1 and liburoce-files.so, for LD_LIBRARY_PATH: in
 * a build beside this program, otherwise as installed. 0, or -1 and `why`.
 */
int library_folders(char path[3 * PATH_MAX], char *why, size_t why_size);

/* The path of another of our programs ("uroced") beside this one. 0, or -1 and `why`. */
int own_program(const char *name, char path[PATH_MAX], char *why, size_t why_size);

#endif
