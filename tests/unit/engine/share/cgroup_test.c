/* SPDX-License-Identifier: BSD-3-Clause */
/* Which limit counts, in trees of files as both versions of control groups have them. */
#include "control/share/cgroup.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char folder[] = "/tmp/uroce-cgroup-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	for (char *p = path + sizeof(folder); *p != '\0'; p++)
		if (*p == '/') {
			*p = '\0';
			mkdir(path, 0755);
			*p = '/';
		}
	f = fopen(path, "we");
	cr_assert_not_null(f, "%s: %m", path);
	fputs(text, f);
	fclose(f);
}

static uint64_t limit(void)
{
	char membership[64], mounts[64];

	snprintf(membership, sizeof(membership), "%s/membership", folder);
	snprintf(mounts, sizeof(mounts), "%s/mounts", folder);
	return cgroup_memory_limit_of(membership, mounts);
}

static void begin(void)
{
	cr_assert_not_null(mkdtemp(folder), "%m");
}

static void end(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_expect_eq(system(command), 0);
}

TestSuite(cgroup, .init = begin, .fini = end);

Test(cgroup, none_without_files)
{
	cr_expect_eq(limit(), UINT64_MAX);
	write_file("membership", "0::/a/b\n");
	cr_expect_eq(limit(), UINT64_MAX);
}

Test(cgroup, version_2_has_one_hierarchy)
{
	write_file("membership", "0::/a/b\n");
	write_file("mounts/a/b/memory.max", "max\n");
	cr_expect_eq(limit(), UINT64_MAX);
	write_file("mounts/a/b/memory.max", "1073741824\n");
	cr_expect_eq(limit(), 1073741824);
}

Test(cgroup, version_1_names_the_controller)
{
	write_file("membership", "5:devices:/a/b\n4:memory:/a/b\n1:cpu:/\n0::/\n");
	write_file("mounts/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	cr_expect_eq(limit(), 9223372036854771712u);
	write_file("mounts/memory/a/b/memory.limit_in_bytes", "4096\n");
	write_file("mounts/devices/a/b/memory.limit_in_bytes", "1\n");
	cr_expect_eq(limit(), 4096);
}

Test(cgroup, the_least_above_counts)
{
	write_file("membership", "0::/a/b/c\n");
	write_file("mounts/a/memory.max", "3000\n");
	write_file("mounts/a/b/memory.max", "2000\n");
	write_file("mounts/a/b/c/memory.max", "max\n");
	cr_expect_eq(limit(), 2000);
	write_file("mounts/a/memory.max", "1000\n");
	cr_expect_eq(limit(), 1000);
}

/* The mount shows the container's own group, by which name ever the host calls it. */
Test(cgroup, a_container_sees_its_own_group_as_the_root)
{
	write_file("membership", "4:memory:/docker/0123\n");
	write_file("mounts/memory/memory.limit_in_bytes", "5000\n");
	cr_expect_eq(limit(), 5000);
	write_file("membership", "0::/\n");
	write_file("mounts/memory.max", "6000\n");
	cr_expect_eq(limit(), 6000);
}

Test(cgroup, lines_that_are_none)
{
	write_file("membership", "\n:\n4:memory\n::::\nmemory\n");
	write_file("mounts/memory/memory.limit_in_bytes", "5000\n");
	cr_expect_eq(limit(), UINT64_MAX);
}
