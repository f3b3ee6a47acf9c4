/* SPDX-License-Identifier: BSD-3-Clause */
#include "preload/rewrite.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct place {
	const char *words[4];
	const char *inside;
} places[] = {
	{ { "sys", "class", "infiniband", NULL }, "/class/infiniband" },
	{ { "sys", "class", "infiniband_verbs", NULL }, "/class/infiniband_verbs" },
	{ { "dev", "infiniband", NULL }, "/dev/infiniband" },
};

/* The next word of a path, after slashes and "." */
static const char *next_word(const char *path, size_t *length)
{
	for (;;) {
		path += strspn(path, "/");
		*length = strcspn(path, "/");
		if (*length != 1 || path[0] != '.')
			return path;
		path++;
	}
}

/* The rest of `path` after the words. NULL: it does not begin with them. */
static const char *behind(const char *path, const char *const *words)
{
	size_t length;

	for (; *words != NULL; words++) {
		path = next_word(path, &length);
		if (length != strlen(*words) || memcmp(path, *words, length) != 0)
			return NULL;
		path += length;
	}
	return path;
}

/* Whether ".." leaves the device's files. */
static bool goes_out(const char *path)
{
	size_t length;
	int depth = 0;

	for (path = next_word(path, &length); length > 0;
	     path = next_word(path + length, &length)) {
		depth += length == 2 && path[0] == '.' && path[1] == '.' ? -1 : 1;
		if (depth < 0)
			return true;
	}
	return false;
}

int rewrite(const char *root, const char **path, char room[REWRITE_ROOM])
{
	const char *rest;

	if (root == NULL || *path == NULL || (*path)[0] != '/')
		return 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		rest = behind(*path, places[i].words);
		if (rest == NULL || goes_out(rest))
			continue;
		if (snprintf(room, REWRITE_ROOM, "%s%s%s", root, places[i].inside, rest) >=
		    REWRITE_ROOM)
			return ENAMETOOLONG;
		*path = room;
		return 0;
	}
	return 0;
}
