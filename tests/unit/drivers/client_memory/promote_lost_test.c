/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program has taken something away that promotion needs, and its memory may not change:
 * - It has closed descriptors that it does not know, and the promoted file's number is another
 *   file's. That file may not change either.
 * - It has called chroot(2), and there is no /proc any more.
 */
#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "users.h"

#define PAGE  ((size_t)4096)
#define MIB   ((size_t)1 << 20)
#define PARTS 16u

TestSuite(promote_lost, .timeout = 60);

static uint8_t *new_memory(void)
{
	void *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

/* The first half has contents, the rest is holes. */
static uint8_t *new_promoted(struct mr_backing *b)
{
	uint8_t *p = new_memory();

	memset(p, 5, MIB / 2);
	if (promote_range(p, MIB, b, PARTS) != 1)
		cr_skip_test("this kernel or user may not use userfaultfd");
	return p;
}

static bool is_shared(const void *p)
{
	struct mapping m;

	cr_assert_eq(maps_read((uintptr_t)p, (uintptr_t)p + 1, false, &m, 1), 1);
	return m.shared;
}

static bool is_as_before(const uint8_t *p)
{
	for (size_t i = 0; i < MIB; i++)
		if (p[i] != (i < MIB / 2 ? 5 : 0))
			return false;
	return true;
}

/* A file of the program, which gets the promoted file's number. */
static int log_instead(void)
{
	int fd = promote_file(), file = memfd_create("log", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_geq(file, 0);
	cr_assert_eq(write(file, "a line\n", 7), 7);
	cr_assert_eq(dup2(file, fd), fd);
	close(file);
	return fd;
}

static bool is_the_log(int fd)
{
	struct stat st;
	char line[8] = "";

	return fstat(fd, &st) == 0 && st.st_size == 7 && pread(fd, line, 7, 0) == 7 &&
	       strcmp(line, "a line\n") == 0;
}

Test(promote_lost, deregistration_leaves_the_memory_as_it_was)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_promoted(b);
	int log = log_instead();

	promote_release(b, 1);
	cr_expect(is_as_before(p));
	cr_expect_not(is_shared(p), "an allocator that discards it expects zeros");
	cr_expect(is_the_log(log));
}

Test(promote_lost, registration_writes_nothing_into_the_other_file)
{
	struct mr_backing b[PARTS], again[PARTS];
	uint8_t *p = new_promoted(b), *q = new_memory();
	int log = log_instead();

	memset(q, 6, MIB);
	cr_expect_eq(promote_range(q, MIB, again, PARTS), 0);
	cr_expect_eq(promote_range(p, MIB, again, PARTS), 0);
	cr_expect_eq(promote_file(), -1, "no engine gets the other file");
	cr_expect_not(is_shared(q));
	cr_expect(is_as_before(p));
	cr_expect(is_the_log(log));
}

/* Its writes are its own, also where it may only write later. */
static int live_in_child(uint8_t *p, int log)
{
	if (mprotect(p, PAGE, PROT_READ | PROT_WRITE) != 0 || !is_as_before(p))
		return 1;
	memset(p, 7, MIB);
	return is_the_log(log) ? 0 : 2;
}

static void expect_success_in_child(uint8_t *p, int log)
{
	pid_t child = fork();
	int status;

	cr_assert_geq(child, 0);
	if (child == 0)
		_exit(live_in_child(p, log));
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%#x", (unsigned int)status);
}

Test(promote_lost, a_forks_child_has_its_copy)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_promoted(b);
	int log = log_instead();

	expect_success_in_child(p, log);
	cr_expect(is_as_before(p));
	cr_expect(is_the_log(log));
}

Test(promote_lost, a_forks_child_has_a_copy_of_what_may_not_be_accessed)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_promoted(b);
	int log = log_instead();

	cr_assert_eq(mprotect(p, PAGE, PROT_NONE), 0);
	expect_success_in_child(p, log);
	cr_assert_eq(mprotect(p, PAGE, PROT_READ), 0);
	cr_expect(is_as_before(p));
}

Test(promote_lost, a_forks_child_keeps_the_other_file)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_promoted(b);
	int log;

	promote_release(b, 1);
	log = log_instead();
	expect_success_in_child(p, log);
	cr_expect(is_the_log(log));
}

/* ---- without /proc ---- */

static void lose_proc(void)
{
	char empty[] = "/tmp/uroce-empty-XXXXXX";

	cr_assert_not_null(mkdtemp(empty), "%m");
	cr_assert_eq(chdir(empty), 0);
	cr_assert_eq(rmdir(empty), 0);
	cr_assert_eq(chroot("."), 0, "%m");
	cr_assert_eq(access("/proc", F_OK), -1);
}

/* Closes the descriptors of this process's own maps and smaps. */
static void close_all_maps(void)
{
	char link[32], path[64];

	for (int fd = 3; fd < 256; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, path, sizeof(path) - 1);
		path[n < 0 ? 0 : n] = '\0';
		if (n > 4 && strcmp(path + n - 4, "maps") == 0)
			close(fd);
	}
}

static void *moved(void *p)
{
	void *to = new_memory();

	cr_assert_eq(mremap(p, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	return to;
}

/* The child writes, and the parent writes before the child reads. */
static void expect_separate_memory(uint8_t *p)
{
	int go[2], status;
	pid_t child;

	cr_assert_eq(pipe(go), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		char octet;
		bool same = read(go[0], &octet, 1) == 1 && is_as_before(p);

		memset(p, 7, MIB);
		_exit(!same);
	}
	p[MIB - 1] = 1;
	cr_assert_eq(write(go[1], "g", 1), 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%#x", (unsigned int)status);
	cr_expect_eq(p[MIB - 1], 1);
	p[MIB - 1] = 0;
	cr_expect(is_as_before(p));
}

Test(promote_lost, a_forks_child_has_its_copy_without_proc, .init = expect_root)
{
	struct mr_backing b[PARTS];
	uint8_t *p = moved(new_promoted(b));

	lose_proc();
	expect_separate_memory(p);
	expect_separate_memory(p);
}

Test(promote_lost, a_forks_child_has_its_copy_without_proc_and_descriptors, .init = expect_root)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_promoted(b);

	close_all_maps();
	close(promote_file());
	lose_proc();
	expect_separate_memory(p);
}

/* A grandchild has no promoted memory, and the child has no use for its parent's descriptors. */
Test(promote_lost, a_forks_child_forks_without_proc, .init = expect_root)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_promoted(b);
	int status;
	pid_t child;

	lose_proc();
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		child = fork();
		if (child == 0)
			_exit(!is_as_before(p));
		_exit(child < 0 || waitpid(child, &status, 0) != child || status != 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%#x", (unsigned int)status);
}

Test(promote_lost, deregistration_without_proc_makes_it_private, .init = expect_root)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_promoted(b);

	lose_proc();
	promote_release(b, 1);
	cr_expect(is_as_before(p));
	cr_expect_eq(mremap(p, 0, PAGE, MREMAP_MAYMOVE), MAP_FAILED, "it is a shared mapping");
}

Test(promote_lost, registration_without_proc_promotes_nothing, .init = expect_root)
{
	struct mr_backing b[PARTS], again[PARTS];
	uint8_t *p = new_promoted(b), *q = new_memory();

	lose_proc();
	memset(q, 6, MIB);
	cr_expect_eq(promote_range(q, MIB, again, PARTS), 0);
	cr_expect_eq(q[0], 6);
	cr_expect(is_as_before(p));
}
