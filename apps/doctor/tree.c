/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void join(const struct machine *m, char *path, size_t size, const char *format,
		 va_list arguments)
{
	int n = snprintf(path, size, "%s", m->root);

	if (n >= 0 && (size_t)n < size)
		vsnprintf(path + n, size - (size_t)n, format, arguments);
}

/* A va_list lives in one function only, hence no function. */
#define JOIN(m, path, format)                                    \
	do {                                                     \
		va_list arguments_;                              \
                                                                 \
		va_start(arguments_, format);                    \
		join(m, path, sizeof(path), format, arguments_); \
		va_end(arguments_);                              \
	} while (0)

void tree_path(const struct machine *m, char *path, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	join(m, path, size, format, arguments);
	va_end(arguments);
}

bool tree_has(const struct machine *m, const char *format, ...)
{
	char path[PATH_MAX];

	JOIN(m, path, format);
	return access(path, F_OK) == 0;
}

FILE *tree_file(const struct machine *m, const char *format, ...)
{
	char path[PATH_MAX];

	JOIN(m, path, format);
	return fopen(path, "re");
}

DIR *tree_folder(const struct machine *m, const char *format, ...)
{
	char path[PATH_MAX];

	JOIN(m, path, format);
	return opendir(path);
}

static bool line_of(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");

	text[0] = '\0';
	if (f == NULL)
		return false;
	if (fgets(text, (int)size, f) == NULL)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(f);
	return text[0] != '\0';
}

bool tree_line(const struct machine *m, char *text, size_t size, const char *format, ...)
{
	char path[PATH_MAX];

	JOIN(m, path, format);
	return line_of(path, text, size);
}

bool tree_number(const struct machine *m, int64_t *n, const char *format, ...)
{
	char path[PATH_MAX], text[64], *end;

	*n = 0;
	JOIN(m, path, format);
	if (!line_of(path, text, sizeof(text)))
		return false;
	errno = 0;
	*n = strtoll(text, &end, 0);
	return errno == 0 && end != text && *end == '\0';
}

bool tree_link(const struct machine *m, char *name, size_t size, const char *format, ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *last;
	ssize_t n;

	name[0] = '\0';
	JOIN(m, path, format);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	last = strrchr(target, '/');
	snprintf(name, size, "%s", last != NULL ? last + 1 : target);
	return name[0] != '\0';
}

const char *tree_next(DIR *folder)
{
	const struct dirent *d;

	while (folder != NULL && (d = readdir(folder)) != NULL)
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			return d->d_name;
	return NULL;
}

bool tree_numbered(const char *name, const char *prefix, int32_t *number)
{
	size_t length = strlen(prefix);
	char *end;
	long n;

	if (strncmp(name, prefix, length) != 0 || !isdigit((unsigned char)name[length]))
		return false;
	n = strtol(name + length, &end, 10);
	if (*end != '\0' || n > INT32_MAX)
		return false;
	*number = (int32_t)n;
	return true;
}
