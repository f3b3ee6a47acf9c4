/* SPDX-License-Identifier: BSD-3-Clause */
#include "mount_namespace.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

char place[64];
static int host = -1;

void mount_namespace_enter(void)
{
	if (unshare(CLONE_NEWNS) != 0) {
		fprintf(stderr, "skipped: a mount namespace of its own needs root: %s\n",
			strerror(errno));
		cr_skip_test("no mount namespace");
	}
	/* first detached from the real host, then shared as on hosts */
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	strcpy(place, "/tmp/uroce-mounts-XXXXXX");
	cr_assert_not_null(mkdtemp(place));
	cr_assert_eq(mount("test", place, "tmpfs", 0, "mode=755"), 0);
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL), 0);
	host = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	cr_assert_geq(host, 0);
}

void mount_namespace_return(void)
{
	cr_assert_eq(setns(host, CLONE_NEWNS), 0, "%s", strerror(errno));
}

void mount_namespace_leave(void)
{
	if (host < 0)
		return;
	mount_namespace_return();
	umount2(place, MNT_DETACH);
	cr_expect_eq(rmdir(place), 0);
}

const char *at(const char *path)
{
	static char full[4][PATH_MAX];
	static unsigned int next;
	char *to = full[next++ % 4];

	snprintf(to, PATH_MAX, "%s%s%s", path[0] == '/' ? "" : place, path[0] == '/' ? "" : "/",
		 path);
	return to;
}

void make_folder(const char *path)
{
	cr_assert_eq(mkdir(at(path), 0755), 0, "%s: %s", path, strerror(errno));
}

void make_file(const char *path, const char *text)
{
	FILE *f = fopen(at(path), "w");

	cr_assert_not_null(f, "%s: %s", path, strerror(errno));
	cr_assert_geq(fputs(text, f), 0);
	cr_assert_eq(fclose(f), 0);
}

void make_tmpfs(const char *path)
{
	make_folder(path);
	cr_assert_eq(mount("test", at(path), "tmpfs", 0, "mode=755"), 0);
}

void expect_text(const char *path, const char *text)
{
	char got[64] = "";
	FILE *f = fopen(at(path), "r");

	if (text == NULL) {
		cr_expect_null(f, "%s exists", path);
	} else {
		cr_expect_not_null(f, "%s: %s", path, strerror(errno));
		if (f != NULL)
			fgets(got, sizeof(got), f);
		cr_expect_str_eq(got, text, "%s: '%s', not '%s'", path, got, text);
	}
	if (f != NULL)
		fclose(f);
}
