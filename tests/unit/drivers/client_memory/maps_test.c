/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/client_memory/maps.h"

#define PAGE 4096u

/* The mapping of this address. */
static struct mapping mapping_of(const void *p)
{
	struct mapping m;
	struct maps f;
	bool found = false;

	cr_assert_eq(maps_open(&f), 0);
	while (!found && maps_next(&f, &m))
		found = (uintptr_t)p >= m.start && (uintptr_t)p < m.end;
	maps_close(&f);
	cr_assert(found, "%p is not in the list", p);
	return m;
}

Test(maps, a_line_is_read_whole)
{
	char path[] = "/tmp/uroce-maps-XXXXXX";
	int fd = mkstemp(path);
	struct mapping m;
	struct stat st;
	char *p;

	cr_assert_geq(fd, 0);
	unlink(path);
	cr_assert_eq(ftruncate(fd, 8 * PAGE), 0);
	cr_assert_eq(fstat(fd, &st), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 3 * PAGE);
	cr_assert_neq(p, MAP_FAILED);
	m = mapping_of(p);
	cr_expect_eq(m.start, (uintptr_t)p);
	cr_expect_eq(m.end, (uintptr_t)p + 2 * PAGE);
	cr_expect_eq(m.offset, 3 * PAGE);
	cr_expect_eq(m.inode, st.st_ino);
	cr_expect(m.readable && !m.writable && !m.executable && m.shared);
	cr_expect_not(m.named);
}

Test(maps, the_stack_has_a_name_and_anonymous_memory_has_none)
{
	int here;
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mapping stack = mapping_of(&here), anonymous = mapping_of(p);

	cr_expect(stack.named && stack.stack && stack.writable && !stack.shared);
	cr_expect_not(anonymous.named || anonymous.stack || anonymous.shared);
	cr_expect_eq(anonymous.inode, 0);
}

/* A folder of 250 octets in another, and so on: the file's path is longer than any buffer. */
static int make_deep_file(char *top, char *name)
{
	int folder = open(mkdtemp(top), O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	for (int i = 0; i < 20; i++) {
		int inner;

		cr_assert_eq(mkdirat(folder, name, 0700), 0);
		inner = openat(folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(folder);
		folder = inner;
	}
	fd = openat(folder, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	close(folder);
	return fd;
}

static void remove_tree(const char *top)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -r %s", top);
	cr_expect_eq(system(command), 0);
}

Test(maps, a_path_may_be_longer_than_the_buffers)
{
	char top[] = "/tmp/uroce-maps-XXXXXX", name[251] = "";
	struct mapping m[3];
	char *p;
	int fd;

	memset(name, 'x', sizeof(name) - 1);
	fd = make_deep_file(top, name);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, PAGE), 0);
	p = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_eq(mmap(p + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), p + PAGE);
	cr_assert_eq(maps_read((uintptr_t)p + PAGE, (uintptr_t)p + 2 * PAGE + 1, true, m, 3), 2);
	cr_expect_eq(m[0].start, (uintptr_t)p + PAGE);
	cr_expect(m[0].shared);
	cr_expect_eq(m[1].start, (uintptr_t)p + 2 * PAGE);
	cr_expect_eq(mapping_of(p + 2 * PAGE).start, (uintptr_t)p + 2 * PAGE);
	close(fd);
	remove_tree(top);
}

Test(maps, smaps_tells_what_was_advised)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mapping m;

	cr_assert_eq(madvise(p, PAGE, MADV_DONTDUMP), 0);
	cr_assert_eq(maps_read((uintptr_t)p, (uintptr_t)p + 1, true, &m, 1), 1);
	cr_expect_eq(m.marks, MARK_DONTDUMP);
	cr_expect_not(m.special);
}
