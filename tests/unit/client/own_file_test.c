/* SPDX-License-Identifier: BSD-3-Clause */
/* The number of a descriptor may be another file's by now. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/own_file.h"

static int ours, other;
static struct own_file file;

static void begin(void)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ours = pair[0];
	other = pair[1];
	file = own_file_of(ours);
}

TestSuite(own_file, .init = begin);

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

Test(own_file, it_is_known_by_each_of_its_numbers)
{
	int again = dup(ours);

	cr_assert_geq(again, 0);
	cr_expect(own_file_is(&file, ours));
	cr_expect(own_file_is(&file, again));
	cr_expect_not(own_file_is(&file, other), "the other end is another file");
}

Test(own_file, a_closed_number_is_of_none)
{
	close(ours);
	cr_expect_not(own_file_is(&file, ours));
	cr_expect_not(own_file_is(&file, -1));
	own_file_close(&file, -1);
}

Test(own_file, it_is_closed_and_the_other_end_is_not)
{
	own_file_close(&file, ours);
	cr_expect_not(is_open(ours));
	own_file_close(&file, ours); /* once more */
	cr_expect(is_open(other));
}

/* A socket of the same kind, a device, and a file. */
Test(own_file, a_number_that_was_used_again_stays_open)
{
	const char *paths[] = { NULL, "/dev/null", "/proc/self/smaps" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int fd = paths[i] != NULL ? open(paths[i], O_RDONLY | O_CLOEXEC)
					  : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		cr_assert_geq(fd, 0);
		cr_assert_eq(dup2(fd, ours), ours);
		cr_expect_not(own_file_is(&file, ours), "%s", paths[i]);
		own_file_close(&file, ours);
		cr_expect(is_open(ours), "%s", paths[i]);
		close(fd);
	}
}

Test(own_file, both_inode_and_device_are_compared)
{
	struct own_file elsewhere = file, next = file;

	elsewhere.device++;
	next.inode++;
	cr_expect_not(own_file_is(&elsewhere, ours));
	cr_expect_not(own_file_is(&next, ours));
}

Test(own_file, what_was_never_open_names_nothing)
{
	struct own_file zeros = { 0 }, closed;

	close(other);
	closed = own_file_of(other);
	for (int fd = 0; fd < 64; fd++) {
		cr_expect_not(own_file_is(&zeros, fd), "%d", fd);
		cr_expect_not(own_file_is(&closed, fd), "%d", fd);
	}
	cr_expect_eq(own_file_of(-1).inode, 0);
}
