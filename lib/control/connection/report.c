/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/connection/report.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/bits.h"

#define REPORT_FDS (LIMIT_COMMAND_FDS + 1u) /* of a message, and of the program's memory */

static void fill(struct call *call, const struct porter_report *r, const int *fd, uint32_t n)
{
	uint32_t next = 0;

	/*
	 * Too many descriptors are more than any command has, and unchecked: this ends the
	 * connection.
	 */
	if (r->got > 0 && r->count <= LIMIT_COMMAND_FDS)
		call->length = (size_t)r->got;
	call->in.count = MIN_OF(r->count, LIMIT_COMMAND_FDS);
	for (uint32_t i = 0; i < call->in.count; i++)
		call->in.fd[i] = (r->passed >> i & 1) != 0 && next < n ? fd[next++] : -1;
	call->memory.sought = r->greeted != 0;
	call->memory.error = r->found;
	call->memory.fd = r->greeted != 0 && r->found == 0 && next < n ? fd[next] : -1;
	call->memory.proven = r->proven != 0;
	call->memory.foreign = r->foreign != 0;
	call->memory.by_pid = r->by_pid != 0;
	call->in_lost = r->lost != 0;
	call->file.known = r->described != 0;
	call->file.device = (dev_t)r->device;
	call->file.inode = (ino_t)r->inode;
}

/* Receives harmless descriptors, no more than a report may have. */
static ssize_t receive(int channel, struct porter_report *r, int *fd, uint32_t *n)
{
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(REPORT_FDS * sizeof(int))];
	} space;
	struct iovec iov = { r, sizeof(*r) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &space,
			    .msg_controllen = sizeof(space) };
	ssize_t got = recvmsg(channel, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	*n = 0;
	if (c != NULL) {
		*n = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fd, CMSG_DATA(c), *n * sizeof(int));
	}
	if (got > 0 && (m.msg_flags & MSG_CTRUNC) != 0)
		r->lost = 1;
	return got;
}

bool report_receive(int channel, struct porter_report *r, struct call *call)
{
	int fd[REPORT_FDS];
	uint32_t n;

	if (receive(channel, r, fd, &n) != sizeof(*r))
		return false;
	fill(call, r, fd, n);
	return true;
}
