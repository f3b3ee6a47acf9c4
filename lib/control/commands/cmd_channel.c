/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: a socketpair, so that the program also sees the engine's death on its end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/control.h"

static int open_ends(struct call *call, int *ours, int *theirs)
{
	int error = call_take(call, RESOURCE_DESCRIPTORS, 1);

	if (error != 0)
		return error;
	error = event_pair(ours, theirs);
	if (error == 0)
		return 0;
	account_give(&call->client->objects->account, RESOURCE_DESCRIPTORS, 1);
	return call_fail(call, error, "the engine cannot create a pair of sockets: %s",
			 strerror(error));
}

int channel_open(struct call *call, enum object_kind kind, uint32_t *handle, int *fd)
{
	struct handle_table *t = &call->client->objects->table[kind];
	int theirs = -1, error;

	*handle = handle_reserve(t);
	if (*handle == 0)
		return call_no_handle(call, kind);
	error = open_ends(call, fd, &theirs);
	if (error != 0) {
		handle_free(t, *handle);
		return error;
	}
	call->out.fd[call->out.count++] = theirs;
	return 0;
}

int cmd_create_channel(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct handle_table *t = &call->client->objects->table[OBJECT_CHANNEL];
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	struct engine_channel *ch;
	int error;

	if (object_find(call->client, OBJECT_CONTEXT, r->handle) == NULL)
		return call_fail(call, EINVAL, "no such context");
	ch = calloc(1, sizeof(*ch));
	if (ch == NULL)
		return ENOMEM;
	ch->client = call->client;
	ch->context = r->handle;
	error = channel_open(call, OBJECT_CHANNEL, &ch->handle, &ch->fd);
	if (error != 0) {
		free(ch);
		return error;
	}
	handle_publish(t, ch->handle, ch);
	reply->handle = ch->handle;
	return 0;
}

void channel_close(struct client *c, int fd)
{
	close(fd);
	account_give(&c->objects->account, RESOURCE_DESCRIPTORS, 1);
}

void channel_free(struct client *c, struct engine_channel *ch)
{
	struct handle_table *t = &c->objects->table[OBJECT_CHANNEL];

	handle_withdraw(t, ch->handle);
	handle_free(t, ch->handle);
	channel_close(c, ch->fd);
	free(ch);
}

int cmd_destroy_channel(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct engine_channel *ch = object_find(call->client, OBJECT_CHANNEL, r->handle);

	if (ch == NULL)
		return call_fail(call, EINVAL, "no such completion channel");
	if (ch->users != 0)
		return call_fail(call, EBUSY, "%u completion queues use it", ch->users);
	channel_free(call->client, ch);
	return 0;
}
