/* SPDX-License-Identifier: BSD-3-Clause */
/* Which folders a starting engine removes; each test has a folder of its own. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "uroced_runtime.h"

#define NOBODY 65534

static char parent[] = "/tmp/uroce-runtime-test-XXXXXX";
static char own[64];
static int dead; /* a pid that no process has */

static const char *at(const char *name)
{
	static char path[8][256];
	static unsigned int next;
	char *p = path[next++ % 8];

	snprintf(p, sizeof(path[0]), "%.64s/%.64s", parent, name);
	return p;
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);

	cr_assert_geq(fd, 0, "%s: %m", path);
	close(fd);
}

static bool exists(const char *path)
{
	struct stat s;

	return lstat(path, &s) == 0;
}

/* Makes a folder with a file in it. */
static const char *make(const char *name)
{
	const char *path = at(name);
	char file[280];

	cr_assert_eq(mkdir(path, 0700), 0, "%s: %m", path);
	snprintf(file, sizeof(file), "%s/file", path);
	make_file(file);
	return path;
}

static const char *make_dead(void)
{
	char name[32];

	snprintf(name, sizeof(name), "uroce-%d", dead);
	return make(name);
}

static bool is_whole(const char *path)
{
	char file[280];

	snprintf(file, sizeof(file), "%s/file", path);
	return exists(file);
}

static void open_parent(void)
{
	dead = fork();
	if (dead == 0)
		_exit(0);
	cr_assert_eq(waitpid(dead, NULL, 0), dead);
	cr_assert_not_null(mkdtemp(parent));
	snprintf(own, sizeof(own), "%s/uroce-%d", parent, getpid());
	make(strrchr(own, '/') + 1);
}

static void remove_parent(void)
{
	char words[128];

	snprintf(words, sizeof(words), "rm -rf '%s'", parent);
	if (system(words) != 0)
		perror(words);
}

TestSuite(runtime, .init = open_parent, .fini = remove_parent, .timeout = 20);

Test(runtime, files_and_sockets_are_removed)
{
	const char *folder = make_dead();
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", folder);
	cr_assert_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0, "%m");
	runtime_folder_remove_dead(own);
	cr_expect(!exists(folder));
	cr_expect(is_whole(own));
	close(fd);
}

Test(runtime, other_names_are_kept)
{
	static const char *const formats[] = {
		"uroce-test-%d", "uroce-0%d", "uroce-%dx", "uroce--%d",		 "uroce-+%d",
		"uroce- %d",	 "Uroce-%d",  "%d",	   "uroce-%d00000000000"
	};
	char name[sizeof(formats) / sizeof(formats[0])][64];

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		snprintf(name[i], sizeof(name[i]), formats[i], dead);
		make(name[i]);
	}
	make("uroce-");
	make("uroce-0");
	runtime_folder_remove_dead(own);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		cr_expect(is_whole(at(name[i])), "%s", name[i]);
	cr_expect(is_whole(at("uroce-")));
	cr_expect(is_whole(at("uroce-0")));
}

Test(runtime, folders_of_living_pids_are_kept)
{
	const char *folder = make("uroce-1");

	runtime_folder_remove_dead(own);
	cr_expect(is_whole(folder));
}

Test(runtime, folders_of_other_users_are_kept)
{
	const char *folder = make_dead();

	if (geteuid() != 0 || chown(folder, NOBODY, NOBODY) != 0)
		cr_skip_test("only root can give a folder away");
	runtime_folder_remove_dead(own);
	cr_expect(is_whole(folder));
}

Test(runtime, a_folder_of_another_user_is_not_touched)
{
	const char *folder = make_dead();

	if (geteuid() != 0 || chown(parent, NOBODY, NOBODY) != 0)
		cr_skip_test("only root can give a folder away");
	runtime_folder_remove_dead(own);
	cr_expect(is_whole(folder));
}

Test(runtime, links_are_not_followed)
{
	const char *elsewhere = make("elsewhere"), *folder;
	char name[32], inner[280];

	snprintf(name, sizeof(name), "uroce-%d", dead);
	cr_assert_eq(symlink(elsewhere, at(name)), 0);
	runtime_folder_remove_dead(own);
	cr_expect(is_whole(elsewhere));
	cr_expect(exists(at(name)));
	cr_assert_eq(unlink(at(name)), 0);

	folder = make_dead();
	snprintf(inner, sizeof(inner), "%s/link", folder);
	cr_assert_eq(symlink(elsewhere, inner), 0);
	runtime_folder_remove_dead(own);
	cr_expect(is_whole(elsewhere));
	cr_expect(exists(inner));
}

Test(runtime, subfolders_are_kept)
{
	const char *folder = make_dead();
	char inner[32];

	snprintf(inner, sizeof(inner), "uroce-%d/inner", dead);
	make(inner);
	runtime_folder_remove_dead(own);
	cr_expect(is_whole(at(inner)));
	cr_expect(!is_whole(folder));
}

/*
 * Its pid is not in use in this pid namespace, like that of an engine in another one. hostile H-140
 */
Test(runtime, a_locked_folder_is_kept_until_its_holder_dies)
{
	const char *folder = make_dead();
	int ready[2];
	pid_t holder;
	char octet;

	cr_assert_eq(pipe(ready), 0);
	holder = fork();
	if (holder == 0) {
		runtime_folder_hold(folder);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &octet, 1), 1);
	runtime_folder_remove_dead(own);
	cr_expect(is_whole(folder));
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	runtime_folder_remove_dead(own);
	cr_expect(!exists(folder));
}

/* A process that makes the folder of that pid, and lives until it is killed. */
static pid_t make_in_child(int pid)
{
	int ready[2];
	pid_t child;
	char octet;

	cr_assert_eq(setenv("RUNTIME_DIRECTORY", parent, 1), 0);
	cr_assert_eq(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		runtime_folder_make(pid);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &octet, 1), 1);
	close(ready[0]);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* An engine in another pid namespace that has not started EAL yet. hostile H-140 */
Test(runtime, a_folder_is_held_as_soon_as_it_is_made)
{
	pid_t engine = make_in_child(dead);
	char folder[128], beside[128];

	snprintf(folder, sizeof(folder), "%s/dpdk/uroce-%d", parent, dead);
	snprintf(beside, sizeof(beside), "%s/dpdk/uroce-%d", parent, getpid());
	cr_expect(exists(folder));
	runtime_folder_remove_dead(beside);
	cr_expect(exists(folder));
	end(engine);
	runtime_folder_remove_dead(beside);
	cr_expect(!exists(folder));
}

/* It belonged to a dead engine, and another engine is about to remove it. */
Test(runtime, a_folder_that_is_just_removed_is_made_again)
{
	char above[64], folder[128];
	pid_t remover, engine;
	int done[2], fd;

	snprintf(above, sizeof(above), "%s/dpdk", parent);
	snprintf(folder, sizeof(folder), "%s/uroce-%d", above, dead);
	cr_assert(mkdir(above, 0700) == 0 && mkdir(folder, 0700) == 0 && pipe(done) == 0);
	remover = fork();
	if (remover == 0) {
		const struct timespec pause = { .tv_nsec = 20000000 };

		fd = open(folder, O_RDONLY | O_DIRECTORY);
		if (flock(fd, LOCK_EX) != 0 || write(done[1], "", 1) != 1)
			_exit(1);
		nanosleep(&pause, NULL); /* the engine may look now, or later */
		_exit(rmdir(folder) != 0);
	}
	cr_assert_eq(read(done[0], above, 1), 1);
	engine = make_in_child(dead);
	cr_assert_eq(waitpid(remover, &fd, 0), remover);
	cr_assert_eq(fd, 0);
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	cr_expect_geq(fd, 0, "%m");
	cr_expect_neq(flock(fd, LOCK_EX | LOCK_NB), 0, "the engine holds it");
	close(fd);
	end(engine);
}

/* EAL was given another name, or has its folder elsewhere. */
Test(runtime, another_folder_in_the_place_of_what_was_made)
{
	char folder[128];

	cr_assert_eq(setenv("RUNTIME_DIRECTORY", parent, 1), 0);
	snprintf(folder, sizeof(folder), "%s/dpdk/uroce-%d", parent, dead);
	runtime_folder_make(dead);
	cr_expect(exists(folder));
	runtime_folder_hold(make("mine"));
	cr_expect(!exists(folder));
}
