/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "verbs/types.h"

struct pd *pd_make(struct context *c, enum command command, struct command_request *request,
		   size_t length)
{
	struct pd *pd = calloc(1, sizeof(*pd));
	struct reply_handle reply;
	int error;

	if (pd == NULL)
		return fail_with(ENOMEM);
	error = attachment_command(c->attachment, command, request, length, &reply.h, sizeof(reply),
				   NULL, NULL);
	if (error != 0) {
		free(pd);
		return fail_with(error);
	}
	pd->ibv.context = &c->verbs.context;
	pd->ibv.handle = reply.handle;
	context_hold(c);
	return pd;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct request_handle request = { 0 };
	struct pd *pd;

	if (context == NULL)
		return fail_with(EINVAL);
	request.handle = context_of(context)->handle;
	pd = pd_make(context_of(context), COMMAND_ALLOC_PD, &request.h, sizeof(request));
	return pd != NULL ? &pd->ibv : NULL;
}

/* The inner protection domain still belongs to the program. */
static void leave_inner(struct pd *pd)
{
	verbs_object_unuse(&pd_of(pd->inner)->object);
	if (pd->td != NULL)
		verbs_object_unuse(&pd->td->object);
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct context *c = context_of(ibv->context);
	struct pd *pd = pd_of(ibv);
	int error = 0;

	if (verbs_object_busy(&pd->object))
		return EBUSY;
	if (pd->inner == NULL)
		error = context_destroy(c, COMMAND_DEALLOC_PD, ibv->handle);
	if (error != 0)
		return error;
	if (pd->inner != NULL)
		leave_inner(pd);
	free(pd);
	context_drop(c);
	return 0;
}
