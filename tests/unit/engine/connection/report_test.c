/* SPDX-License-Identifier: BSD-3-Clause */
/* What a porter reports of one message, and which descriptors come with it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "control/connection/report.h"

static int channel[2]; /* the engine's end, and the porter's */

static void open_channel(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), 0);
}

TestSuite(report, .init = open_channel, .timeout = 30);

/* Sends the first octets of a report with n descriptors of /dev/null. */
static void send_part(const struct porter_report *r, size_t octets, uint32_t n)
{
	int fd[LIMIT_COMMAND_FDS + 1], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(sizeof(fd))];
	} space = { .align = { .cmsg_len = CMSG_LEN(n * sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { (void *)(uintptr_t)r, octets };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	cr_assert_geq(null, 0);
	for (uint32_t i = 0; i < n; i++)
		fd[i] = null;
	memcpy(CMSG_DATA(&space.align), fd, n * sizeof(int));
	if (n > 0) {
		m.msg_control = &space;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	cr_assert_eq(sendmsg(channel[1], &m, 0), (ssize_t)octets);
	close(null);
}

static struct call receive(const struct porter_report *r, uint32_t n)
{
	struct porter_report came;
	struct call call = { .length = 0 };

	send_part(r, sizeof(*r), n);
	cr_assert(report_receive(channel[0], &came, &call));
	cr_expect_eq(came.octets[0], r->octets[0]);
	return call;
}

static bool is_open(int fd)
{
	return fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

/* One that could not be passed on leaves its place, and the others keep theirs. */
Test(report, descriptors_keep_their_order)
{
	const struct porter_report r = {
		.got = 40, .count = 3, .passed = 1u | 1u << 2, .lost = 1, .octets = { 7 }
	};
	struct call call = receive(&r, 2);

	cr_expect_eq(call.length, 40);
	cr_expect_eq(call.in.count, 3);
	cr_expect(is_open(call.in.fd[0]) && is_open(call.in.fd[2]));
	cr_expect_eq(call.in.fd[1], -1);
	cr_expect(call.in_lost);
	cr_expect_not(call.memory.sought);
	cr_expect_eq(call.memory.fd, -1);
}

/* The program's memory comes behind the descriptors of the message. */
Test(report, memory_is_the_last_descriptor)
{
	const struct porter_report r = { .got = 8,
					 .count = 1,
					 .greeted = 1,
					 .proven = 1,
					 .by_pid = 1,
					 .described = 1,
					 .device = 3,
					 .inode = 4 };
	struct call call = receive(&r, 1);

	cr_expect_eq(call.in.fd[0], -1, "it was not passed on");
	cr_expect(is_open(call.memory.fd));
	cr_expect(call.memory.sought && call.memory.proven && call.memory.by_pid);
	cr_expect_not(call.memory.foreign);
	cr_expect(call.file.known && call.file.device == 3 && call.file.inode == 4);
}

Test(report, memory_that_was_not_found_has_no_descriptor)
{
	const struct porter_report r = { .got = 8, .greeted = 1, .found = EACCES };
	struct call call = receive(&r, 0);

	cr_expect(call.memory.sought);
	cr_expect_eq(call.memory.error, EACCES);
	cr_expect_eq(call.memory.fd, -1);
}

/* No command has so many: a message without octets ends its connection. */
Test(report, too_many_descriptors_leave_no_message)
{
	const struct porter_report r = { .got = 40, .count = LIMIT_COMMAND_FDS + 1, .lost = 1 };
	struct call call = receive(&r, 0);

	cr_expect_eq(call.length, 0);
	cr_expect_eq(call.in.count, LIMIT_COMMAND_FDS);
	for (uint32_t i = 0; i < call.in.count; i++)
		cr_expect_eq(call.in.fd[i], -1);
}

Test(report, a_program_that_ended_leaves_no_message)
{
	const struct porter_report r = { .got = 0 };

	cr_expect_eq(receive(&r, 0).length, 0);
}

Test(report, a_porter_that_ended_reports_nothing)
{
	const struct porter_report r = { .got = 8 };
	struct porter_report came;
	struct call call = { .length = 0 };

	send_part(&r, sizeof(r) / 2, 0);
	cr_expect_not(report_receive(channel[0], &came, &call), "half a report");
	close(channel[1]);
	cr_expect_not(report_receive(channel[0], &came, &call));
}
