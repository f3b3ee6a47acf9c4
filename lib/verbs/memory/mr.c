/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/vfs.h>

#include "client/log.h"
#include "drivers/client_memory/promote.h"
#include "verbs/memory/mapping.h"
#include "verbs/memory/mr.h"

#undef ibv_reg_mr /* macros in verbs.h that choose between the functions below */
#undef ibv_reg_mr_iova

int mr_check_access(unsigned int access)
{
	if (access & ACCESS_FLUSH_PERSISTENT)
		return EOPNOTSUPP; /* no memory here is persistent */
	if (access & ~(unsigned int)(MR_ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
		return EINVAL;
	/* IBTA 10.6.3.1: remote write and atomic access need local write access */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

int mr_check_range(const void *addr, size_t length, unsigned int access)
{
	uintptr_t address = (uintptr_t)addr;

	if (mr_is_implicit(addr, length, access))
		return 0;
	if (length == 0 || length > LIMIT_MR_LENGTH || address + length < address)
		return EINVAL;
	if (access & IBV_ACCESS_ON_DEMAND)
		return address == 0 ? EINVAL : 0; /* mappings do not matter yet */
	return mapping_check(address, length, (access & MR_ACCESS_WRITES) != 0);
}

int mr_promote(struct context *c, void *addr, size_t length, unsigned int access,
	       struct mr_backing *named, struct promoted *p)
{
	struct promote_region *r = &p->region;
	size_t octets;

	*p = (struct promoted){ 0 };
	if (c->attachment->carrier->embedded || !attachment_promotes(c->attachment))
		return 0;
	*r = (struct promote_region){ (uintptr_t)addr, length, .backing = named };
	promote_enter(r, BACKING_MAX, !(access & IBV_ACCESS_ON_DEMAND));
	p->looked_at = true;
	octets = r->count * sizeof(struct mr_backing);
	if (octets == 0) {
		r->backing = NULL;
		return 0;
	}
	r->backing = malloc(octets);
	if (r->backing == NULL) {
		r->backing = named;
		promote_leave(r);
		*p = (struct promoted){ 0 };
		return ENOMEM;
	}
	memcpy(r->backing, named, octets);
	return 0;
}

static void free_backing(struct promoted *p)
{
	free(p->region.backing);
	*p = (struct promoted){ 0 };
}

/* A fork's child has private copies of its parent's pages, so it has nothing to demote. */
void mr_demote(struct context *c, struct promoted *p)
{
	if (p->looked_at && !c->attachment->stale)
		promote_leave(&p->region);
	free_backing(p);
}

void mr_abandon(struct mr *mr)
{
	free_backing(&mr->promoted);
	free(mr);
}

/* A request with room for all the parts that one message can name. */
union registration {
	struct request_reg_mr request;
	uint8_t octets[sizeof(struct request_reg_mr) + BACKING_MAX * sizeof(struct mr_backing)];
};

static void take_reply(struct mr *mr, const struct reply_reg_mr *reply)
{
	mr->ibv.handle = reply->handle;
	mr->ibv.lkey = reply->lkey;
	mr->ibv.rkey = reply->rkey;
}

static int register_in_engine(struct context *c, struct mr *mr, uint64_t iova)
{
	struct ibv_mr *ibv = &mr->ibv;
	union registration r = { .request = { .pd = ibv->pd->handle,
					      .access = mr->access,
					      .address = (uintptr_t)ibv->addr,
					      .length = ibv->length,
					      .iova = iova } };
	struct reply_reg_mr reply;
	int error =
		mr_promote(c, ibv->addr, ibv->length, mr->access, r.request.backing, &mr->promoted);

	if (error != 0)
		return error;
	r.request.backings = mr->promoted.region.count;
	r.request.leaves = mr->promoted.region.leaves;
	error = attachment_command(c->attachment, COMMAND_REG_MR, &r.request.h,
				   sizeof(r.request) +
					   mr->promoted.region.count * sizeof(struct mr_backing),
				   &reply.h, sizeof(reply), NULL, NULL);
	if (error == 0)
		take_reply(mr, &reply);
	return error;
}

static struct mr *mr_new(struct ibv_pd *pd, void *addr, size_t length)
{
	struct mr *mr = calloc(1, sizeof(*mr));

	if (mr == NULL)
		return NULL;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	return mr;
}

/* Ends a registration after the engine's reply. */
static struct ibv_mr *mr_finish(struct mr *mr, int error)
{
	struct context *c = context_of(mr->ibv.context);

	if (error != 0) {
		mr_demote(c, &mr->promoted);
		free(mr);
		return fail_with(error);
	}
	verbs_object_use(&pd_of(mr->ibv.pd)->object);
	context_hold(c);
	return &mr->ibv;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access)
{
	int error = pd == NULL ? EINVAL : mr_check_access(access);
	struct mr *mr;

	if (error == 0)
		error = mr_check_range(addr, length, access);
	if (error != 0) {
		client_info("reg_mr of %zu octets at %p, access %#x: %s", length, addr, access,
			    strerror(error));
		return fail_with(error);
	}
	mr = mr_new(pd, addr, length);
	if (mr == NULL)
		return fail_with(ENOMEM);
	mr->access = access & MR_ACCESS_KNOWN;
	error = register_in_engine(context_of(pd->context), mr,
				   access & IBV_ACCESS_ZERO_BASED ? 0 : iova);
	return mr_finish(mr, error);
}

struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd)
{
	struct request_handle request = { .handle = pd->handle };
	struct mr *mr = mr_new(pd, NULL, SIZE_MAX);
	struct reply_reg_mr reply;
	int error;

	if (mr == NULL)
		return fail_with(ENOMEM);
	mr->kind = MR_NULL;
	error = attachment_command(attachment_of(pd->context), COMMAND_ALLOC_NULL_MR, &request.h,
				   sizeof(request), &reply.h, sizeof(reply), NULL, NULL);
	if (error == 0)
		take_reply(mr, &reply);
	return mr_finish(mr, error);
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct context *c = context_of(ibv->context);
	bool imported = (ibv->handle & MR_IMPORT_MARK) != 0;
	int error =
		context_destroy(c, imported ? COMMAND_UNIMPORT_MR : COMMAND_DEREG_MR, ibv->handle);

	if (error != 0)
		return error;
	verbs_object_unuse(&pd_of(ibv->pd)->object);
	mr_demote(c, &mr_of(ibv)->promoted);
	free(mr_of(ibv));
	context_drop(c);
	return 0;
}

#define DMA_BUF_MAGIC 0x444d4142 /* linux/magic.h */
#define DMABUF_ACCESS (MR_ACCESS_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING)

/* Not supported. Wrong arguments still get their own error. */
EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access)
{
	int error = mr_check_access((unsigned int)access);
	struct statfs fs;

	if (pd == NULL || error != 0 || (access & ~DMABUF_ACCESS) != 0 || length == 0 ||
	    offset + length < offset || ((offset ^ iova) & 4095) != 0)
		return fail_with(EINVAL);
	if (fstatfs(fd, &fs) != 0)
		return fail_with(EBADF);
	return fail_with(fs.f_type == DMA_BUF_MAGIC ? EOPNOTSUPP : EINVAL);
}
