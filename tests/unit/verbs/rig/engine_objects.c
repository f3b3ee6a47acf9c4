/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine_objects.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void engine_statistics(struct reply_statistics *s)
{
	struct request_empty q = { .h = { .magic = COMMAND_MAGIC,
					  .version = COMMAND_VERSION,
					  .command = COMMAND_STATISTICS,
					  .length = sizeof(q) } };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	strncpy(to.sun_path, getenv("UROCE_SOCKET"), sizeof(to.sun_path) - 1);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0, "%m");
	cr_assert_eq(send(fd, &q, sizeof(q), 0), (ssize_t)sizeof(q));
	cr_assert_eq(recv(fd, s, sizeof(*s), 0), (ssize_t)sizeof(*s));
	cr_assert_eq(s->h.error, 0);
	close(fd);
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
