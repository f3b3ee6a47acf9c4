/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory (ibv_alloc_dm(3)). It is memory of the engine that this process maps, too, so a
 * copy to or from it is a memcpy. As on devices with such memory, copies are in units of four
 * octets.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory_call.h"
#include "queue/cancel.h"
#include "verbs/memory/dm.h"

#define UNIT 4u
#define PAGE 4096u

static int check_copy(const struct dm *dm, uint64_t offset, size_t length)
{
	if (!range_inside(offset, length, dm->length))
		return EFAULT;
	return offset % UNIT != 0 || length % UNIT != 0 ? EINVAL : 0;
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *host, size_t length)
{
	struct dm *dm = dm_of(ibv);
	int error = check_copy(dm, offset, length);

	if (error != 0)
		return error;
	memcpy(dm->base + offset, host, length);
	return 0;
}

static int copy_from(void *host, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	struct dm *dm = dm_of(ibv);
	int error = check_copy(dm, offset, length);

	if (error != 0)
		return error;
	memcpy(host, dm->base + offset, length);
	return 0;
}

/* Maps the memory that came with the engine's reply, and closes the descriptor. */
static int dm_map(struct dm *dm, const struct reply_dm *reply, struct carrier_descriptors *received)
{
	int error = EMFILE; /* it was sent, but this process has no free descriptor */
	int cancel = cancel_off();
	void *p;

	if (received->count == 1 && reply->length > 0) {
		dm->length = reply->length;
		dm->mapped = round_up(reply->length, PAGE);
		p = memory_map(NULL, dm->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			       received->fd[0], 0);
		error = p == MAP_FAILED ? errno : 0;
		dm->base = p;
	}
	for (uint32_t i = 0; i < received->count; i++)
		close(received->fd[i]);
	cancel_restore(cancel);
	return error;
}

struct ibv_dm *dm_make(struct ibv_context *context, struct attachment *attachment,
		       enum command what, struct command_request *request, size_t request_bytes)
{
	struct carrier_descriptors received = { 0 };
	struct dm *dm = calloc(1, sizeof(*dm));
	struct reply_dm reply;
	int error;

	if (dm == NULL)
		return fail_with(ENOMEM);
	error = attachment_command(attachment, what, request, request_bytes, &reply.h,
				   sizeof(reply), NULL, &received);
	if (error == 0) {
		error = dm_map(dm, &reply, &received);
		if (error != 0)
			attachment_command_handle(attachment, COMMAND_FREE_DM, reply.handle);
	}
	if (error != 0) {
		free(dm);
		return fail_with(error);
	}
	dm->attachment = attachment;
	dm->imported = what == COMMAND_IMPORT_DM;
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.handle = reply.handle;
	context_hold(context_of(context));
	return &dm->ibv;
}

void dm_forget(struct dm *dm)
{
	struct context *c = context_of(dm->ibv.context);

	memory_unmap(dm->base, dm->mapped);
	free(dm);
	context_drop(c);
}

struct ibv_dm *verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct request_alloc_dm request = { 0 };
	struct attachment *attachment;
	int error;

	if (attr == NULL || attr->comp_mask != 0)
		return fail_with(EINVAL);
	request.length = attr->length;
	request.log_align = attr->log_align_req;
	error = context_own_attachment(context_of(context), &attachment, &request.context);
	if (error != 0)
		return fail_with(error);
	return dm_make(context, attachment, COMMAND_ALLOC_DM, &request.h, sizeof(request));
}

int verbs_free_dm(struct ibv_dm *ibv)
{
	struct context *c = context_of(ibv->context);
	struct dm *dm = dm_of(ibv);
	int error = 0;

	if (!c->closed)
		error = destroy_error(
			c, attachment_command_handle(dm->attachment, COMMAND_FREE_DM, ibv->handle));
	if (error == 0)
		dm_forget(dm);
	return error;
}

static int register_in_engine(struct context *c, struct ibv_mr *mr, const struct ibv_dm *dm,
			      uint64_t offset, unsigned int access)
{
	struct request_reg_dm_mr request = { .pd = mr->pd->handle,
					     .dm = dm->handle,
					     .offset = offset,
					     .length = mr->length,
					     .access = access &
						       ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE };
	struct reply_reg_mr reply;
	int error = attachment_command(c->attachment, COMMAND_REG_DM_MR, &request.h,
				       sizeof(request), &reply.h, sizeof(reply), NULL, NULL);

	if (error != 0)
		return error;
	mr->handle = reply.handle;
	mr->lkey = reply.lkey;
	mr->rkey = reply.rkey;
	return 0;
}

struct ibv_mr *verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			       size_t length, unsigned int access)
{
	struct context *c = context_of(pd->context);
	struct mr *mr;
	int error;

	/* Handles belong to one attachment, so the memory must have the attachment of the PD. */
	if (dm == NULL || dm->context != pd->context || dm_of(dm)->attachment != c->attachment)
		return fail_with(EINVAL);
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return fail_with(ENOMEM);
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.length = length;
	mr->kind = MR_DEVICE;
	error = register_in_engine(c, &mr->ibv, dm, dm_offset, access);
	if (error != 0) {
		free(mr);
		return fail_with(error);
	}
	verbs_object_use(&pd_of(pd)->object);
	context_hold(c);
	return &mr->ibv;
}
