/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine_objects.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void ask(struct command_request *q, uint16_t command, uint32_t length,
		struct command_reply *reply, size_t reply_length)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	*q = (struct command_request){ .magic = COMMAND_MAGIC,
				       .version = COMMAND_VERSION,
				       .command = command,
				       .length = length };
	strncpy(to.sun_path, getenv("UROCE_SOCKET"), sizeof(to.sun_path) - 1);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0, "%m");
	cr_assert_eq(send(fd, q, length, 0), (ssize_t)length);
	cr_assert_eq(recv(fd, reply, reply_length, 0), (ssize_t)reply_length);
	cr_assert_eq(reply->error, 0);
	close(fd);
}

void engine_statistics(struct reply_statistics *s)
{
	struct request_empty q;

	ask(&q.h, COMMAND_STATISTICS, sizeof(q), &s->h, sizeof(*s));
}

struct listed_qp engine_listed_qp(uint32_t qpn)
{
	struct request_list q = { .from = 0 };
	struct reply_qp_list reply;

	ask(&q.h, COMMAND_QP_LIST, sizeof(q), &reply.h, sizeof(reply));
	for (uint32_t i = 0; i < reply.count; i++)
		if (reply.qp[i].qpn == qpn)
			return reply.qp[i];
	cr_assert_fail("queue pair %u is not among the first %u", qpn, reply.count);
	return (struct listed_qp){ 0 };
}

uint64_t engine_objects(void)
{
	struct reply_statistics s;
	uint64_t n = 0;

	engine_statistics(&s);
	for (uint32_t kind = 0; kind < STATISTICS_KINDS; kind++)
		n += s.objects[kind];
	return n;
}
