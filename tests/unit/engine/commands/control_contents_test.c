/* SPDX-License-Identifier: BSD-3-Clause */
/* Every command with any contents gets a reply that tells nothing (hostile H-118, H-119). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/control_rig.h"

TestSuite(control_contents, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

/* The reply to a request of any contents: nothing in it that was not put there. */
static void expect_clean(int fd, struct command_request *q, const char *with)
{
	uint8_t octets[LIMIT_COMMAND_BYTES];
	struct command_reply *r = (struct command_reply *)octets;
	char space[CMSG_SPACE(LIMIT_COMMAND_FDS * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = { octets, sizeof(octets) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	const char *name = command_name(q->command);
	ssize_t n;

	cr_assert_eq(send(fd, q, q->length, MSG_NOSIGNAL), (ssize_t)q->length);
	memset(octets, 0xaa, sizeof(octets));
	n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c))
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			close(((int *)(void *)CMSG_DATA(c))[i]);
	cr_assert_geq(n, (ssize_t)sizeof(*r), "%s with %s: %zd octets", name, with, n);
	cr_expect_eq(r->length, (uint32_t)n);
	cr_expect_eq(r->reserved, 0);
	for (size_t i = strnlen(r->why, sizeof(r->why)); i < sizeof(r->why); i++)
		cr_expect_eq(r->why[i], 0, "%s with %s: octet %zu of why", name, with, i);
	if (r->error != 0)
		cr_expect_eq(n, (ssize_t)sizeof(*r), "%s with %s: an error has no more", name,
			     with);
}

/*
 * hostile H-118: reply octets that were never written; H-119: any message; H-143: sizes of rings;
 * H-154: lists of pieces.
 */
Test(control_contents, every_command_with_any_contents)
{
	static const struct {
		const char *name;
		uint8_t octet;
	} with[] = { { "zeros", 0 },	{ "ones", 0xff },  { "small numbers", 1 },
		     { "noise", 0x55 }, { "noise", 0x55 }, { "noise", 0x55 },
		     { "noise", 0x55 } };
	uint8_t octets[LIMIT_COMMAND_BYTES];
	struct command_request *q = (struct command_request *)octets;
	int before = count_descriptors();
	struct objects o;

	srandom(1);
	for (uint32_t what = 0; what < COMMAND_COUNT; what++)
		for (size_t i = 0; i < ARRAY_SIZE(with); i++) {
			int fd = attach();

			make_objects(fd, &o);
			for (size_t k = 0; k < sizeof(octets); k++)
				octets[k] = with[i].octet != 0x55 ? with[i].octet
								  : (uint8_t)(random() & 3);
			*q = (struct command_request){ .magic = COMMAND_MAGIC,
						       .version = COMMAND_VERSION,
						       .command = (uint16_t)what,
						       .length = (uint32_t)request_size(what) };
			expect_clean(fd, q, with[i].name);
			close(fd);
		}
	expect_counts(0, 0, 0, 0);
	expect_descriptors(before);
	expect_serving();
}
