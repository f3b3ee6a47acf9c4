/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mounts for one program, in mount namespaces: what the program sees, and that the host sees
 * nothing.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/files.h"
#include "base/bits.h"
#include "mount_namespace.h"

/*
 *	source/shown                what is to be shown
 *	old/folder/inside           one entry of each kind that a folder may have
 *	old/link -> folder
 *	old/file
 *	old/mounted/deep            a tmpfs
 *	old/there/before            a folder that exists already
 */
static void begin(void)
{
	mount_namespace_enter();
	make_folder("source");
	make_file("source/shown", "shown");
	make_folder("old");
	make_folder("old/folder");
	make_file("old/folder/inside", "inside");
	cr_assert_eq(symlink("folder", at("old/link")), 0);
	make_file("old/file", "text");
	make_tmpfs("old/mounted");
	make_file("old/mounted/deep", "deep");
	make_folder("old/there");
	make_file("old/there/before", "before");
}

TestSuite(mounts, .init = begin, .fini = mount_namespace_leave, .timeout = 60);

static void expect_old(void)
{
	char link[32] = "";

	expect_text("old/folder/inside", "inside");
	expect_text("old/link/inside", "inside");
	cr_expect_eq(readlink(at("old/link"), link, sizeof(link) - 1), 6);
	cr_expect_str_eq(link, "folder");
	expect_text("old/file", "text");
	expect_text("old/mounted/deep", "deep");
}

/* Checks that the host sees nothing of this. */
static void expect_host(void)
{
	mount_namespace_return();
	expect_old();
	expect_text("old/there/before", "before");
	expect_text("old/new/shown", NULL);
	cr_expect_neq(access(at("old/new"), F_OK), 0, "the host has the folder");
}

static void expect_read_only(const char *path)
{
	cr_expect_eq(open(at(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644), -1);
	cr_expect_eq(errno, EROFS, "%s: %s", path, strerror(errno));
}

Test(mounts, a_new_mount_namespace_is_private)
{
	cr_assert_eq(mounts_begin(false), 0);
	cr_assert_eq(mount("test", at("source"), "tmpfs", 0, NULL), 0);
	expect_text("source/shown", NULL);
	mount_namespace_return();
	expect_text("source/shown", "shown");
}

/* For example a disk that the host mounts while the program runs. */
Test(mounts, later_mounts_of_the_host_are_visible)
{
	int status;
	pid_t child;

	child = fork();
	if (child == 0) {
		struct stat before, after;

		if (mounts_begin(false) != 0 || stat(at("source"), &before) != 0 ||
		    kill(getpid(), SIGSTOP) != 0 || stat(at("source"), &after) != 0)
			_exit(2);
		_exit(before.st_dev != after.st_dev ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	cr_assert(WIFSTOPPED(status), "%d", status);
	cr_assert_eq(mount("test", at("source"), "tmpfs", 0, NULL), 0);
	kill(child, SIGCONT);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%d", status);
}

Test(mounts, an_existing_folder_is_covered)
{
	cr_assert_eq(mounts_begin(false), 0);
	cr_assert_eq(mounts_put(at("source"), at("old"), "there", false), 0);
	expect_text("old/there/shown", "shown");
	expect_text("old/there/before", NULL);
	expect_read_only("old/there/other");
	make_file("old/other", "its neighbours are unchanged");
	cr_assert_eq(unlink(at("old/other")), 0);
	make_file("source/later", "later");
	expect_text("old/there/later", "later");
	expect_old();
	expect_host();
}

static const bool ways[] = { false, true };

/* Through a tmpfs full of mounts, as in /sys/class, and through an overlay, as in /dev. */
Test(mounts, a_missing_folder_is_added)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		cr_assert_eq(mounts_begin(false), 0);
		cr_assert_eq(mounts_put(at("source"), at("old"), "new", ways[i]), 0);
		expect_text("old/new/shown", "shown");
		expect_read_only("old/new/other");
		expect_old();
		expect_text("old/there/before", "before");
		expect_host();
	}
}

Test(mounts, device_nodes_still_work)
{
	char octet = 1;
	int fd;

	cr_assert_eq(mknod(at("old/null"), S_IFCHR | 0666, makedev(1, 3)), 0);
	cr_assert_eq(mknod(at("old/zero"), S_IFCHR | 0666, makedev(1, 5)), 0);
	cr_assert_eq(mounts_begin(false), 0);
	cr_assert_eq(mounts_put(at("source"), at("old"), "new", true), 0);
	fd = open(at("old/zero"), O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s", strerror(errno));
	cr_expect_eq(read(fd, &octet, 1), 1);
	cr_expect_eq(octet, 0);
	close(fd);
	cr_assert_eq(unlink(at("old/zero")), 0, "a program can remove a node");
	mount_namespace_return();
	cr_expect_eq(access(at("old/zero"), F_OK), 0, "... but the host still has it");
}

/* Sends a datagram to a socket of the host at this path, or an octet to a pipe. */
static bool reaches(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	bool is_pipe = strstr(path, "pipe") != NULL;
	int fd = is_pipe ? open(at(path), O_WRONLY | O_NONBLOCK | O_CLOEXEC)
			 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool done;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", at(path));
	done = fd >= 0 && (is_pipe || connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0) &&
	       write(fd, "x", 1) == 1;
	if (fd >= 0)
		close(fd);
	return done;
}

static void listen_at(const char *path)
{
	struct sockaddr_un here = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(here.sun_path, sizeof(here.sun_path), "%s", at(path));
	cr_assert_eq(bind(fd, (const struct sockaddr *)&here, sizeof(here)), 0);
}

/* For example /dev/log, whose reader is outside the namespace. */
Test(mounts, sockets_and_pipes_lead_to_the_host)
{
	static const char *const paths[] = { "old/socket", "old/pipe", "old/folder/socket" };

	listen_at(paths[0]);
	cr_assert_eq(mkfifo(at(paths[1]), 0600), 0);
	cr_assert_geq(open(at(paths[1]), O_RDWR | O_NONBLOCK | O_CLOEXEC), 0);
	listen_at(paths[2]);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		cr_assert_eq(mounts_begin(false), 0);
		cr_assert_eq(mounts_put(at("source"), at("old"), "new", ways[i]), 0);
		for (size_t k = 0; k < ARRAY_SIZE(paths); k++)
			cr_expect(reaches(paths[k]), "%s, %s", paths[k],
				  ways[i] ? "overlay" : "mounts");
		mount_namespace_return();
	}
}

static ino_t inode_of(const char *path)
{
	struct stat st;

	cr_assert_eq(stat(at(path), &st), 0);
	return st.st_ino ^ (ino_t)st.st_dev << 32;
}

Test(mounts, a_failure_changes_nothing)
{
	ino_t before = inode_of("old");

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		cr_assert_eq(mounts_begin(false), 0);
		cr_expect_eq(mounts_put(at("nowhere"), at("old"), "new", ways[i]), ENOENT);
		cr_expect_eq(inode_of("old"), before, "the folder is covered");
		cr_expect_neq(access(at("old/new"), F_OK), 0);
		cr_expect_eq(mounts_put(at("nowhere"), at("old"), "there", ways[i]), ENOENT);
		cr_expect_eq(mounts_put(at("source"), at("nowhere"), "new", ways[i]), ENOENT);
		cr_expect_eq(mounts_put(at("source"), at("old/file"), "new", ways[i]), ENOTDIR);
		expect_old();
		expect_host();
	}
}

/* As another user, in a process of its own; returns its status. */
static int as_user(int (*what)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (setgid(65534) != 0 || setuid(65534) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
			_exit(99);
		_exit(what());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int begin_as_user(void)
{
	return mounts_begin(false);
}

static int put_as_user(void)
{
	int error = mounts_begin(true);

	if (error != 0)
		return error;
	if (geteuid() != 65534 || getegid() != 65534)
		return 200;
	if (mounts_put(at("source"), at("old"), "new", false) != 0)
		return 201;
	return access(at("old/new/shown"), R_OK) == 0 && access(at("old/folder"), R_OK) == 0 ? 0
											     : 202;
}

Test(mounts, a_user_needs_a_user_namespace)
{
	int status;

	cr_expect_eq(as_user(begin_as_user), EPERM);
	status = as_user(put_as_user);
	if (status == EPERM || status == ENOSPC || status == EACCES) {
		fprintf(stderr, "skipped: user namespaces are not allowed here: %s\n",
			strerror(status));
		cr_skip_test("no user namespaces");
	}
	cr_expect_eq(status, 0, "%d", status);
	expect_host();
}
