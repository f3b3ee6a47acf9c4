/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program has closed descriptors that it does not know, and the promoted file's number is
 * another file's. Then neither that file nor the program's memory may change.
 */
#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
