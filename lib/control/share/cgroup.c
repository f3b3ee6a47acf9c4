/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/share/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"

/* "max" is not a number. */
static uint64_t read_limit(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned long long n;
	bool found = f != NULL && fscanf(f, "%llu", &n) == 1;

	if (f != NULL)
		fclose(f);
	return found ? n : UINT64_MAX;
}

/*
 * The least limit of the group and of each one above it. In a container the mount may begin in the
 * middle of the path, so that only some of these files exist.
 */
static uint64_t least_above(const char *mount, char *group, const char *file)
{
	uint64_t least = UINT64_MAX;
	char path[PATH_MAX];
	char *end;

	do {
		uint64_t limit;

		end = strrchr(group, '/');
		snprintf(path, sizeof(path), "%s%s/%s", mount, group, file);
		limit = read_limit(path);
		least = MIN_OF(least, limit);
		if (end != NULL)
			*end = '\0';
	} while (end != NULL);
	return least;
}

/*
 * "4:cpu,memory:/group" names the group of a version 1 hierarchy, "0::/group" the group of version
 * 2.
 */
static uint64_t limit_of_line(char *line, const char *mounts)
{
	char *controllers = strchr(line, ':');
	char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
	char mount[PATH_MAX];

	if (group == NULL)
		return UINT64_MAX;
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	if (strcmp(controllers + 1, "memory") == 0) {
		snprintf(mount, sizeof(mount), "%s/memory", mounts);
		return least_above(mount, group, "memory.limit_in_bytes");
	}
	if (controllers[1] != '\0')
		return UINT64_MAX;
	return least_above(mounts, group, "memory.max");
}

uint64_t cgroup_memory_limit_of(const char *membership, const char *mounts)
{
	FILE *f = fopen(membership, "re");
	uint64_t least = UINT64_MAX;
	char line[PATH_MAX];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		uint64_t limit = limit_of_line(line, mounts);

		least = MIN_OF(least, limit);
	}
	if (f != NULL)
		fclose(f);
	return least;
}

uint64_t cgroup_memory_limit(void)
{
	return cgroup_memory_limit_of("/proc/self/cgroup", "/sys/fs/cgroup");
}
