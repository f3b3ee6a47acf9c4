/* SPDX-License-Identifier: BSD-3-Clause */
/* What `uroce run` must know of files: the program it is to run, and where our own files lie. */
#ifndef APPS_PROGRAM_H
#define APPS_PROGRAM_H

#include <limits.h>
#include <stddef.h>

enum {
	PROGRAM_NOT_RUNNABLE = 126, /* as shells say it */
	PROGRAM_NOT_FOUND = 127,
};

/* Looks `name` up in PATH as execvp does. 0, or an exit status of the above and `why`. */
int program_find(const char *name, char path[PATH_MAX], char *why, size_t why_size);

/*
 * Whether our libraries can be put in front of the system's in this program: not with the
 * setuid, setgid or file capability that makes the loader ignore LD_LIBRARY_PATH, nor in a
 * statically linked one. 0, or PROGRAM_NOT_RUNNABLE and `why`.
 */
int program_check(const char *path, char *why, size_t why_size);

/*
 * Where our libibverbs.so.1, librdmacm.so.1 and liburoce-files.so are, as LD_LIBRARY_PATH wants it: beside this program
 * in a build, else where they are installed.
 */
int library_folders(char path[3 * PATH_MAX], char *why, size_t why_size);

/* Another program of ours ("uroced"), which lies beside this one. 0, or -1 and `why`. */
int own_program(const char *name, char path[PATH_MAX], char *why, size_t why_size);

#endif
