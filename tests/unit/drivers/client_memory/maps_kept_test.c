/* SPDX-License-Identifier: BSD-3-Clause */
/* A descriptor of smaps that is kept, of which the program knows nothing. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/client_memory/maps_kept.h"

TestSuite(maps_kept, .timeout = 60);

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* The descriptor; nobody has it then. */
static int kept_fd(void)
{
	int fd = maps_kept_take();

	if (fd >= 0)
		maps_kept_give();
	return fd;
}

static bool is_smaps(int fd)
{
	char path[64], target[64] = "", wanted[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(wanted, sizeof(wanted), "/proc/%d/smaps", getpid());
	return readlink(path, target, sizeof(target) - 1) > 0 && strcmp(target, wanted) == 0;
}

/* A regular file at this number, not at its begin. */
static void put_file_at(int fd)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	cr_assert_geq(file, 0);
	cr_assert_eq(dup2(file, fd), fd);
	close(file);
	cr_assert_eq(lseek(fd, 5, SEEK_SET), 5);
}

Test(maps_kept, nothing_is_there_before_it_is_kept)
{
	cr_expect_eq(kept_fd(), -1);
	maps_forget();
	cr_expect_eq(kept_fd(), -1);
	maps_keep();
	cr_expect_geq(kept_fd(), 0);
}

Test(maps_kept, each_reader_begins_at_the_begin)
{
	char text[2][100];

	maps_keep();
	for (int i = 0; i < 2; i++) {
		int fd = maps_kept_take();

		cr_assert(is_smaps(fd));
		cr_assert_eq(read(fd, text[i], sizeof(text[i])), sizeof(text[i]));
		maps_kept_give();
	}
	cr_expect_arr_eq(text[0], text[1], 12, "the address of the first mapping");
	cr_expect(fcntl(kept_fd(), F_GETFD) & FD_CLOEXEC);
}

/* The lowest number that is free. */
static int free_number(int fd)
{
	int lowest = dup(fd);

	close(lowest);
	return lowest;
}

Test(maps_kept, it_is_opened_once)
{
	int fd, before;

	maps_keep();
	fd = kept_fd();
	before = free_number(fd);
	maps_keep();
	cr_expect_eq(kept_fd(), fd);
	cr_expect_eq(free_number(fd), before, "another one is open");
}

Test(maps_kept, a_program_may_close_it)
{
	maps_keep();
	close(kept_fd());
	cr_expect_eq(kept_fd(), -1);
	maps_keep();
	cr_expect(is_smaps(kept_fd()));
}

/* Files of the program stay open, and where they were. */
Test(maps_kept, a_program_may_use_the_number_again)
{
	int first, second;

	maps_keep();
	first = kept_fd();
	put_file_at(first);
	cr_expect_eq(kept_fd(), -1);
	maps_keep();
	second = kept_fd();
	cr_assert(is_smaps(second));
	cr_expect_neq(second, first);
	put_file_at(second);
	maps_forget();
	cr_expect_eq(lseek(first, 0, SEEK_CUR), 5);
	cr_expect_eq(lseek(second, 0, SEEK_CUR), 5);
}

Test(maps_kept, without_a_free_descriptor_there_is_none)
{
	struct rlimit before, few;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ 0, before.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	maps_keep();
	cr_expect_eq(kept_fd(), -1);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	maps_keep();
	cr_expect(is_smaps(kept_fd()));
}

/* A signal came while this thread read its maps. */
Test(maps_kept, a_thread_has_it_once)
{
	int fd;

	maps_keep();
	fd = maps_kept_take();
	cr_assert_geq(fd, 0);
	cr_expect_eq(maps_kept_take(), -1);
	close(fd);
	maps_keep(); /* nor does this wait for itself */
	cr_expect_not(is_open(fd));
	maps_kept_give();
	cr_expect_eq(maps_kept_take(), -1);
	maps_keep();
	cr_expect_geq(kept_fd(), 0);
}

static void *take_and_give(void *fd)
{
	*(int *)fd = kept_fd();
	return NULL;
}

Test(maps_kept, a_failed_take_keeps_no_other_thread_out)
{
	pthread_t thread;
	int fd = 0;

	cr_assert_eq(maps_kept_take(), -1);
	cr_assert_eq(pthread_create(&thread, NULL, take_and_give, &fd), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(fd, -1);
}

static pthread_barrier_t taken, over;

static void *have_it(void *fd)
{
	*(int *)fd = maps_kept_take();
	pthread_barrier_wait(&taken);
	pthread_barrier_wait(&over);
	maps_kept_give();
	return NULL;
}

/* Another thread of the parent reads it. Says in its status what is wrong. */
static int child_of_a_fork(int parents)
{
	maps_forget();
	if (is_open(parents))
		return 1;
	maps_keep(); /* the number may be the same */
	return is_smaps(kept_fd()) ? 0 : 2;
}

Test(maps_kept, the_child_of_a_fork_has_one_of_its_own)
{
	int fd = -1, status;
	pthread_t thread;
	pid_t child;

	maps_keep();
	pthread_barrier_init(&taken, NULL, 2);
	pthread_barrier_init(&over, NULL, 2);
	cr_assert_eq(pthread_create(&thread, NULL, have_it, &fd), 0);
	pthread_barrier_wait(&taken);
	child = fork();
	if (child == 0) {
		alarm(30);
		_exit(child_of_a_fork(fd));
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	pthread_barrier_wait(&over);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert(WIFEXITED(status), "the child waits for a thread of its parent");
	cr_expect_eq(WEXITSTATUS(status), 0, "1: the parent's is open, 2: it has none of its own");
	cr_expect(is_smaps(kept_fd()), "the parent keeps its own");
}
