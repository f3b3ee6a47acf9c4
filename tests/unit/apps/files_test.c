/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a program sees the device's files: through mounts, through the preload library, or not at
 * all. The files only look like an engine's; the mounts are real, in namespaces of the test's own.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/files.h"
#include "base/bits.h"
#include "mount_namespace.h"

#define ENGINE UINT64_C(0x0123456789abcdef)

static struct engine_place where;
static struct reply_device device = { .engine_id = ENGINE };
static char why[512];

/* A socket's path, and the files that an engine keeps beside it. */
static void make_files(void)
{
	char id[32];

	snprintf(where.path, sizeof(where.path), "%s/s", place);
	make_folder("s.files");
	snprintf(id, sizeof(id), "%016" PRIx64 "\n", ENGINE);
	make_file("s.files/engine", id);
	make_folder("s.files/class");
	make_folder("s.files/class/infiniband");
	make_folder("s.files/class/infiniband/uroce0");
	make_file("s.files/class/infiniband/uroce0/node_type", "1: CA");
	make_folder("s.files/class/infiniband_verbs");
	make_folder("s.files/class/infiniband_verbs/uroce0");
	make_file("s.files/class/infiniband_verbs/uroce0/ibdev", "uroce0");
	make_folder("s.files/dev");
	make_folder("s.files/dev/infiniband");
	make_file("s.files/dev/infiniband/uroce0", "node");
}

static void begin(void)
{
	mount_namespace_enter();
	make_files();
	unsetenv("LD_PRELOAD");
	setenv("UROCE_FILES", "/of/another/run", 1);
}

TestSuite(files, .init = begin, .fini = mount_namespace_leave, .timeout = 60);

static enum files_way show(enum files_way wanted)
{
	return files_show(wanted, &where, &device, why, sizeof(why));
}

static void expect_variable(const char *name, const char *wanted)
{
	const char *got = getenv(name);

	if (wanted == NULL)
		cr_expect_null(got, "%s=%s", name, got);
	else
		cr_expect(got != NULL && strcmp(got, wanted) == 0, "%s=%s, not %s", name, got,
			  wanted);
}

Test(files, names_of_ways)
{
	enum files_way way;

	for (enum files_way w = FILES_AUTO; w <= FILES_NONE; w++) {
		cr_expect_eq(files_way_of(files_way_name(w), &way), 0);
		cr_expect_eq(way, w);
	}
	cr_expect_eq(files_way_of("Auto", &way), -1);
	cr_expect_eq(files_way_of("", &way), -1);
}

Test(files, files_are_not_shown)
{
	cr_expect_eq(show(FILES_NONE), FILES_NONE);
	expect_variable("UROCE_FILES", NULL);
	expect_variable("LD_PRELOAD", NULL);
	expect_text("/sys/class/infiniband/uroce0/node_type", NULL);
}

/*
 * In each of these ways the socket may belong to another host, a container, or an engine that has
 * ended.
 */
Test(files, files_of_another_engine_are_not_shown)
{
	static const enum files_way ways[] = { FILES_AUTO, FILES_MOUNTS, FILES_PRELOAD };
	char wanted[256];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		device.engine_id = ENGINE + 1;
		snprintf(wanted, sizeof(wanted), "%s/s.files belongs to another engine", place);
		cr_expect_eq(show(ways[i]), FILES_NONE);
		cr_expect_str_eq(why, wanted, "%s", why);
		snprintf(where.path, sizeof(where.path), "%s/none", place);
		snprintf(wanted, sizeof(wanted), "%s/none.files: No such file or directory", place);
		cr_expect_eq(show(ways[i]), FILES_NONE);
		cr_expect_str_eq(why, wanted, "%s", why);
		device.engine_id = ENGINE;
		snprintf(where.path, sizeof(where.path), "%s/s", place);
		cr_assert_eq(rename(at("s.files/engine"), at("s.files/away")), 0);
		cr_expect_eq(show(ways[i]), FILES_NONE, "no engine's");
		cr_assert_eq(rename(at("s.files/away"), at("s.files/engine")), 0);
		expect_variable("UROCE_FILES", NULL);
		expect_variable("LD_PRELOAD", NULL);
	}
}

Test(files, by_the_preload_library)
{
	cr_expect_eq(show(FILES_PRELOAD), FILES_PRELOAD, "%s", why);
	expect_variable("UROCE_FILES", at("s.files"));
	expect_variable("LD_PRELOAD", FILES_LIBRARY);
	cr_expect_eq(show(FILES_PRELOAD), FILES_PRELOAD, "inside another uroce run");
	expect_variable("LD_PRELOAD", FILES_LIBRARY);
	expect_text("/sys/class/infiniband/uroce0/node_type", NULL);
	/* a sanitizer's library must stay the first */
	setenv("LD_PRELOAD", "libasan.so.8", 1);
	cr_expect_eq(show(FILES_PRELOAD), FILES_PRELOAD);
	expect_variable("LD_PRELOAD", "libasan.so.8:" FILES_LIBRARY);
	/* a program may change its working folder */
	setenv("LD_PRELOAD", "", 1);
	cr_assert_eq(chdir(place), 0);
	strcpy(where.path, "s");
	cr_expect_eq(show(FILES_PRELOAD), FILES_PRELOAD);
	expect_variable("UROCE_FILES", at("s.files"));
	expect_variable("LD_PRELOAD", FILES_LIBRARY);
	cr_assert_eq(chdir("/"), 0);
}

static const enum files_way by_mounts[] = { FILES_AUTO, FILES_MOUNTS };

Test(files, by_mounts_as_root)
{
	for (size_t i = 0; i < ARRAY_SIZE(by_mounts); i++) {
		cr_expect_eq(show(by_mounts[i]), FILES_MOUNTS, "%s", why);
		expect_variable("UROCE_FILES", NULL);
		expect_variable("LD_PRELOAD", NULL);
		expect_text("/sys/class/infiniband/uroce0/node_type", "1: CA");
		expect_text("/sys/class/infiniband_verbs/uroce0/ibdev", "uroce0");
		expect_text("/dev/infiniband/uroce0", "node");
		cr_expect_eq(access("/sys/class/net/lo/ifindex", R_OK), 0, "%s", strerror(errno));
		cr_expect_eq(access("/dev/null", R_OK | W_OK), 0, "%s", strerror(errno));
		mount_namespace_return();
		expect_text("/sys/class/infiniband/uroce0/node_type", NULL);
		expect_text("/dev/infiniband/uroce0", NULL);
		setenv("UROCE_FILES", "/of/another/run", 1);
	}
}

/* The folder of the nodes cannot be mounted: the library shows it. */
Test(files, the_library_shows_what_cannot_be_mounted)
{
	cr_assert_eq(rename(at("s.files/dev"), at("s.files/away")), 0);
	cr_expect_eq(show(FILES_MOUNTS), FILES_MOUNTS, "%s", why);
	expect_variable("UROCE_FILES", at("s.files"));
	expect_variable("LD_PRELOAD", FILES_LIBRARY);
	expect_text("/sys/class/infiniband/uroce0/node_type", "1: CA");
}

/* As another user, in a process of its own; returns the way that was taken. */
static enum files_way as_user(enum files_way wanted)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (setgid(65534) != 0 || setuid(65534) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
			_exit(99);
		status = (int)show(wanted);
		if (status == FILES_NONE)
			fprintf(stderr, "%s\n", why);
		if (status == FILES_MOUNTS &&
		    access("/sys/class/infiniband/uroce0/node_type", R_OK) != 0)
			_exit(98);
		if (status == FILES_PRELOAD && getenv("UROCE_FILES") == NULL)
			_exit(97);
		_exit(status);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return (enum files_way)WEXITSTATUS(status);
}

Test(files, a_user_gets_the_library_by_default)
{
	enum files_way way;

	cr_expect_eq(as_user(FILES_AUTO), FILES_PRELOAD);
	way = as_user(FILES_MOUNTS);
	if (way == FILES_NONE) {
		fprintf(stderr, "skipped: user namespaces are not allowed here\n");
		cr_skip_test("no user namespaces");
	}
	cr_expect_eq(way, FILES_MOUNTS, "%d", (int)way);
}
