/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels: a socketpair, so that the program's end tells it of our death, too. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/control.h"

int channel_open(struct call *call, struct handle_table *t, uint32_t *handle, int *fd)
{
	int theirs = -1, error;

	*handle = handle_reserve(t);
	if (*handle == 0)
		return call_fail(call, ENOMEM, "a program may have %u channels", t->limit);
	error = event_pair(fd, &theirs);
	if (error != 0) {
		handle_free(t, *handle);
		return call_fail(call, error, "the engine has no descriptors left");
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
	error = channel_open(call, t, &ch->handle, &ch->fd);
	if (error != 0) {
		free(ch);
		return error;
	}
	handle_publish(t, ch->handle, ch);
	reply->handle = ch->handle;
	return 0;
}

void channel_free(struct client *c, struct engine_channel *ch)
{
	struct handle_table *t = &c->objects->table[OBJECT_CHANNEL];

	handle_withdraw(t, ch->handle);
	handle_free(t, ch->handle);
	close(ch->fd);
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
