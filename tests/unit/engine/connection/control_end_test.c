/* SPDX-License-Identifier: BSD-3-Clause */
/* What the end of a connection costs the control thread, which serves every program. */
#include <sys/socket.h>
#include <unistd.h>

#include "rig/control_rig.h"

#define ENDS 20
#define FEW  20 /* looks for each end */

TestSuite(control_end, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

static uint32_t looks; /* atomic: at messages that stay */

ssize_t __real_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	if ((flags & MSG_PEEK) != 0)
		__atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED);
	return __real_recvmsg(fd, m, flags);
}

/* The engine does not ask again and again whether an empty message is the end. */
Test(control_end, costs_a_few_calls)
{
	const uint32_t nonsense = 0;

	for (int i = 0; i < ENDS; i++) {
		int fd = message_connect(path);

		/* the engine ends the connection, and four messages are left */
		send(fd, &nonsense, sizeof(nonsense), MSG_NOSIGNAL);
		for (int k = 0; k < 4; k++)
			send(fd, &nonsense, 0, MSG_NOSIGNAL);
		close(fd);
	}
	expect_serving();
	cr_expect_lt(__atomic_load_n(&looks, __ATOMIC_RELAXED), ENDS * FEW);
}
