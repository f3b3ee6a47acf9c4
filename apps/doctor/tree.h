/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a machine below its root folder. Paths are formats and begin with a slash. */
#ifndef APPS_DOCTOR_TREE_H
#define APPS_DOCTOR_TREE_H

#include <dirent.h>
#include <stdio.h>

#include "doctor.h"

bool tree_has(const struct machine *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The first line, without its end. False, and "": the file cannot be read or is empty. */
bool tree_line(const struct machine *m, char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
bool tree_number(const struct machine *m, int64_t *n, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The last part of the path that a link leads to. */
bool tree_link(const struct machine *m, char *name, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* NULL: it cannot be read. */
FILE *tree_file(const struct machine *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
DIR *tree_folder(const struct machine *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The next name in a folder, without . and .. ; NULL: no more. `folder` may be NULL. */
const char *tree_next(DIR *folder);
/* Whether it is `prefix` and a number behind it. */
bool tree_numbered(const char *name, const char *prefix, int32_t *number);
/* The path in the file system; for what other calls need. */
void tree_path(const struct machine *m, char *path, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
