/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts (ibv_open_device) and protection domains. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/control.h"

int event_pair(int *ours, int *theirs)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return errno;
	if (fcntl(fd[0], F_SETFL, O_NONBLOCK) != 0) {
		int error = errno;

		close(fd[0]);
		close(fd[1]);
		return error;
	}
	*ours = fd[0];
	*theirs = fd[1];
	return 0;
}

int cmd_open_context(struct call *call)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_CONTEXT];
	struct reply_context *reply = (struct reply_context *)&call->reply;
	struct context *x = calloc(1, sizeof(*x));
	int theirs = -1, error;

	if (x == NULL)
		return ENOMEM;
	x->handle = handle_reserve(t);
	if (x->handle == 0) {
		free(x);
		return call_fail(call, ENOMEM, "a program may open %u contexts", t->limit);
	}
	error = event_pair(&x->async_fd, &theirs);
	if (error != 0) {
		handle_free(t, x->handle);
		free(x);
		return call_fail(call, error, "the engine has no descriptors left");
	}
	handle_publish(t, x->handle, x);
	call->out.fd[call->out.count++] = theirs;
	reply->handle = x->handle;
	return 0;
}

void context_free(struct client *c, struct context *x)
{
	struct handle_table *t = &c->objects->table[OBJECT_CONTEXT];

	handle_withdraw(t, x->handle);
	handle_free(t, x->handle);
	close(x->async_fd);
	free(x);
}

int cmd_close_context(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;

	if (object_find(call->client, OBJECT_CONTEXT, r->handle) == NULL)
		return call_fail(call, EINVAL, "no such context");
	objects_reclaim(call->client, r->handle);
	return 0;
}

/* Handles are a client's; keys are compared across the engine. */
static uint32_t pd_number(const struct client *c, uint32_t handle)
{
	static_assert((uint64_t)LIMIT_CLIENTS * (LIMIT_PDS + 1) <= UINT32_MAX, "fits a number");
	return c->number * (LIMIT_PDS + 1) + handle;
}

int cmd_alloc_pd(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct handle_table *t = &call->client->objects->table[OBJECT_PD];
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	struct pd *p;

	if (object_find(call->client, OBJECT_CONTEXT, r->handle) == NULL)
		return call_fail(call, EINVAL, "no such context");
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return ENOMEM;
	p->handle = handle_reserve(t);
	if (p->handle == 0) {
		free(p);
		return call_fail(call, ENOMEM, "a program may have %u protection domains",
				 t->limit);
	}
	p->context = r->handle;
	p->number = pd_number(call->client, p->handle);
	handle_publish(t, p->handle, p);
	reply->handle = p->handle;
	return 0;
}

void pd_free(struct client *c, struct pd *p)
{
	struct handle_table *t = &c->objects->table[OBJECT_PD];

	handle_withdraw(t, p->handle);
	handle_free(t, p->handle);
	free(p);
}

int cmd_dealloc_pd(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct pd *p = object_find(call->client, OBJECT_PD, r->handle);

	if (p == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	if (p->users != 0)
		return call_fail(call, EBUSY, "%u objects are in it", p->users);
	pd_free(call->client, p);
	return 0;
}
