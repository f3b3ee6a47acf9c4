/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts (ibv_open_device) and protection domains. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/control.h"

/*
 * The engine never reads. What a program sent would lie in the engine's end until close(2) drops
 * it, and with it descriptors that hold up the thread which drops them.
 */
int event_pair(int *ours, int *theirs)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return errno;
	if (shutdown(fd[0], SHUT_RD) != 0 || fcntl(fd[0], F_SETFL, O_NONBLOCK) != 0) {
		int error = errno;

		close(fd[0]);
		close(fd[1]);
		return error;
	}
	*ours = fd[0];
	*theirs = fd[1];
	return 0;
}

static int context_open_ends(struct call *call, struct context *x)
{
	int theirs = -1, token;
	int error = event_pair(&x->async_fd, &theirs);

	if (error != 0)
		return call_fail(call, error, "the engine cannot create a pair of sockets: %s",
				 strerror(error));
	token = token_create(call->engine, x);
	if (token < 0) {
		error = errno;
		close(theirs);
		close(x->async_fd);
		return call_fail(call, error, "the engine cannot create a token for the context");
	}
	call->out.fd[call->out.count++] = theirs;
	call->out.fd[call->out.count++] = token;
	return 0;
}

int context_create(struct call *call, struct context **out)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_CONTEXT];
	struct reply_context *reply = (struct reply_context *)&call->reply;
	struct context *x = calloc(1, sizeof(*x));
	int error;

	if (x == NULL)
		return ENOMEM;
	x->client = call->client;
	x->handle = handle_reserve(t);
	if (x->handle == 0) {
		free(x);
		return call_no_handle(call, OBJECT_CONTEXT);
	}
	error = call_take(call, RESOURCE_DESCRIPTORS, 1);
	if (error == 0) {
		error = context_open_ends(call, x);
		if (error != 0)
			account_give(&call->client->objects->account, RESOURCE_DESCRIPTORS, 1);
	}
	if (error != 0) {
		handle_free(t, x->handle);
		free(x);
		return error;
	}
	handle_publish(t, x->handle, x);
	reply->handle = x->handle;
	*out = x;
	return 0;
}

int cmd_open_context(struct call *call)
{
	struct context *x;

	return context_create(call, &x);
}

void context_withdraw(struct context *x)
{
	if (x->closed)
		return;
	x->closed = true;
	token_forget(x);
	shutdown(x->async_fd, SHUT_RDWR);
}

void context_free(struct client *c, struct context *x)
{
	struct handle_table *t = &c->objects->table[OBJECT_CONTEXT];

	handle_withdraw(t, x->handle);
	handle_free(t, x->handle);
	context_withdraw(x);
	close(x->async_fd);
	account_give(&c->objects->account, RESOURCE_DESCRIPTORS, 1);
	free(x);
}

int cmd_close_context(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct context *x = object_find(call->client, OBJECT_CONTEXT, r->handle);

	if (x == NULL || x->closed)
		return call_fail(call, EINVAL, "no such context");
	return context_end(call, x);
}

int cmd_alloc_pd(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	struct pd *p;
	int error;

	if (object_find(call->client, OBJECT_CONTEXT, r->handle) == NULL)
		return call_fail(call, EINVAL, "no such context");
	error = pd_create(call, r->handle, NULL, &p);
	if (error == 0)
		reply->handle = p->handle;
	return error;
}

int cmd_dealloc_pd(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct pd *p = object_find(call->client, OBJECT_PD, r->handle);

	if (p == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	if (p->users != 0)
		return call_fail(call, EBUSY, "%u objects use the protection domain", p->users);
	pd_free(call->client, p);
	return 0;
}
