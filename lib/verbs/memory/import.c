/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Import and unimport (ibv_import_device(3)). A context's cmd_fd is a token (struct context_token)
 * that programs may duplicate and pass on. A process that imports it attaches to the same engine
 * and gets a context of its own. The engine then gives it handles of the exporter's objects.
 *
 * Unimport and the destroying verb do the same to an imported object: they give back the handle.
 * The engine frees the object with its last handle (a region: when its exporter deregisters it).
 * Unimport of an object that was not imported frees only the library's part; the engine keeps the
 * object until its context is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/log.h"
#include "queue/cancel.h"
#include "verbs/device.h"
#include "verbs/memory/dm.h"

int token_read(int fd, struct context_token *token)
{
	struct stat st;

	/* only memory files have seals; reading any other file, such as a pipe, could block */
	if (fcntl(fd, F_GET_SEALS) < 0)
		return errno == EBADF ? EBADF : EINVAL;
	if (fstat(fd, &st) != 0 || st.st_size != sizeof(*token) ||
	    pread(fd, token, sizeof(*token), 0) != sizeof(*token) ||
	    token->magic != COMMAND_MAGIC || token->version != COMMAND_VERSION)
		return EINVAL;
	token->path[sizeof(token->path) - 1] = '\0';
	return 0;
}

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct context_token token;
	struct device *device;
	struct context *c;
	int error = token_read(cmd_fd, &token);

	if (error != 0) {
		client_info("import_device: descriptor %d is not a context's token: %s", cmd_fd,
			    strerror(error));
		return fail_with(error);
	}
	device = device_of_engine(token.engine_id, token.path);
	if (device == NULL)
		return fail_with(ENODEV);
	error = context_open(device, cmd_fd, &c);
	if (error != 0) {
		device_drop(device);
		return fail_with(error);
	}
	c->token_fd = cmd_fd; /* it belongs to the library from now on (ibv_import_device(3)) */
	return &c->verbs.context;
}

/* ---- a fork's child ---- */

/*
 * The child inherited the token of its parent's context, and uses it to make a context of its own.
 */
static int attach_child(struct context *c)
{
	struct carrier_descriptors token = { .count = 1, .fd = { c->verbs.context.cmd_fd } };
	struct carrier_descriptors received = { 0 };
	struct request_empty request = { 0 };
	struct reply_context reply;
	struct attachment *attachment;
	int error = attachment_get(&c->device->source, c->device->facts.engine_id, &attachment);

	if (error != 0)
		return error;
	error = attachment_command(attachment, COMMAND_IMPORT_CONTEXT, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), &token, &received);
	for (uint32_t i = 0; i < received.count; i++)
		close(received.fd[i]); /* no thread waits for its events */
	if (error != 0) {
		attachment_put(attachment);
		return error;
	}
	/*
	 * An earlier attachment that this child inherited stays, because its objects still refer to
	 * it.
	 */
	c->own_attachment = attachment;
	c->own_handle = reply.handle;
	return 0;
}

int context_own_attachment(struct context *c, struct attachment **attachment, uint32_t *handle)
{
	int error = 0, cancel;

	if (!c->attachment->stale || c->attachment->carrier->embedded) {
		*attachment = c->attachment;
		*handle = c->handle;
		return 0;
	}
	cancel = cancel_off();
	pthread_mutex_lock(&c->verbs.context.mutex);
	if (c->own_attachment == NULL || attachment_gone(c->own_attachment))
		error = attach_child(c);
	*attachment = c->own_attachment;
	*handle = c->own_handle;
	pthread_mutex_unlock(&c->verbs.context.mutex);
	cancel_restore(cancel);
	return error;
}

/* ---- protection domains ---- */

EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct request_import request = { .handle = pd_handle };
	struct pd *pd;

	if (context == NULL)
		return fail_with(EINVAL);
	request.into = context_of(context)->handle;
	pd = pd_make(context_of(context), COMMAND_IMPORT_PD, &request.h, sizeof(request));
	if (pd == NULL)
		return NULL;
	pd->imported = true;
	return &pd->ibv;
}

/* Keeps the struct until the context is freed, because objects in the PD still refer to it. */
static void retire(struct context *c, struct pd *pd)
{
	pthread_mutex_lock(&c->verbs.context.mutex);
	pd->next_retired = c->retired;
	c->retired = pd;
	pthread_mutex_unlock(&c->verbs.context.mutex);
}

EXPORT void ibv_unimport_pd(struct ibv_pd *ibv)
{
	struct context *c = context_of(ibv->context);
	struct pd *pd = pd_of(ibv);

	/* If the engine still uses it, the engine takes it back with the context. */
	if (pd->imported)
		context_destroy(c, COMMAND_DEALLOC_PD, ibv->handle);
	if (verbs_object_busy(&pd->object))
		retire(c, pd);
	else
		free(pd);
	context_drop(c);
}

/* ---- regions ---- */

EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct request_import request = { .handle = mr_handle };
	struct reply_import_mr reply;
	struct context *c;
	struct mr *mr;
	int error;

	if (pd == NULL)
		return fail_with(EINVAL);
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return fail_with(ENOMEM);
	c = context_of(pd->context);
	request.into = pd->handle;
	error = attachment_command(c->attachment, COMMAND_IMPORT_MR, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), NULL, NULL);
	if (error != 0) {
		free(mr);
		return fail_with(error);
	}
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.length = reply.length;
	mr->ibv.handle = reply.handle;
	mr->ibv.lkey = reply.lkey;
	mr->ibv.rkey = reply.rkey;
	verbs_object_use(&pd_of(pd)->object);
	context_hold(c);
	return &mr->ibv;
}

EXPORT void ibv_unimport_mr(struct ibv_mr *ibv)
{
	struct context *c = context_of(ibv->context);

	if (ibv->handle & MR_IMPORT_MARK)
		context_destroy(c, COMMAND_UNIMPORT_MR, ibv->handle);
	verbs_object_unuse(&pd_of(ibv->pd)->object);
	mr_abandon((struct mr *)ibv);
	context_drop(c);
}

/* ---- device memory ---- */

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct request_import request = { .handle = dm_handle };

	if (context == NULL)
		return fail_with(EINVAL);
	request.into = context_of(context)->handle;
	return dm_make(context, attachment_of(context), COMMAND_IMPORT_DM, &request.h,
		       sizeof(request));
}

EXPORT void ibv_unimport_dm(struct ibv_dm *ibv)
{
	struct dm *dm = dm_of(ibv);

	if (dm->imported)
		context_destroy(context_of(ibv->context), COMMAND_FREE_DM, ibv->handle);
	dm_forget(dm);
}
