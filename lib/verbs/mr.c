/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "client/log.h"
#include "drivers/client_memory/promote.h"
#include "verbs/mapping.h"
#include "verbs/types.h"

#undef ibv_reg_mr /* the macros choose between these functions */
#undef ibv_reg_mr_iova

#define ACCESS_WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN                                                                           \
	(ACCESS_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_HUGETLB)

static int check_access(unsigned int access)
{
	if (access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (access & ~(unsigned int)(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
		return EINVAL;
	/* IBTA 10.6.3.1: who may be written to from outside may be written to from inside */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

static int check_range(uintptr_t address, size_t length, unsigned int access)
{
	if (length == 0 || length > LIMIT_MR_LENGTH || address + length < address)
		return EINVAL;
	return mapping_check(address, length, (access & ACCESS_WRITES) != 0);
}

/* A registration with as many parts as one message can name. */
union registration {
	struct request_reg_mr request;
	uint8_t octets[sizeof(struct request_reg_mr) + BACKING_MAX * sizeof(struct mr_backing)];
};

/* Moves what can be moved of the range to where the engine maps it. */
static int promote(struct context *c, struct mr *mr, struct request_reg_mr *request)
{
	size_t octets;

	if (c->client->carrier->embedded || !client_promotes(c->client))
		return 0;
	request->backings =
		promote_range(mr->ibv.addr, mr->ibv.length, request->backing, BACKING_MAX);
	octets = request->backings * sizeof(struct mr_backing);
	if (octets == 0)
		return 0;
	mr->backing = malloc(octets);
	if (mr->backing == NULL) {
		promote_release(mr->ibv.addr, request->backing, request->backings);
		return ENOMEM;
	}
	memcpy(mr->backing, request->backing, octets);
	mr->promoted = request->backings;
	return 0;
}

/* A fork's child has private copies of its parent's pages: there is nothing to turn back. */
static void forget(struct context *c, struct mr *mr)
{
	if (mr->promoted != 0 && !c->client->stale)
		promote_release(mr->ibv.addr, mr->backing, mr->promoted);
	free(mr->backing);
	free(mr);
}

void mr_abandon(struct mr *mr)
{
	free(mr->backing);
	free(mr);
}

static int register_in_engine(struct context *c, struct mr *mr, uint64_t iova, unsigned int access)
{
	union registration r = { .request = { .pd = mr->ibv.pd->handle,
					      .access = access & ACCESS_KNOWN,
					      .address = (uintptr_t)mr->ibv.addr,
					      .length = mr->ibv.length,
					      .iova = iova } };
	struct reply_reg_mr reply;
	int error = promote(c, mr, &r.request);

	if (error != 0)
		return error;
	error = client_command(c->client, COMMAND_REG_MR, &r.request.h,
			       sizeof(r.request) + mr->promoted * sizeof(struct mr_backing),
			       &reply.h, sizeof(reply), NULL, NULL);
	if (error != 0)
		return error;
	mr->ibv.handle = reply.handle;
	mr->ibv.lkey = reply.lkey;
	mr->ibv.rkey = reply.rkey;
	return 0;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access)
{
	struct context *c = context_of(pd->context);
	int error = check_access(access);
	struct mr *mr;

	if (error == 0)
		error = check_range((uintptr_t)addr, length, access);
	if (error != 0) {
		client_info("reg_mr of %zu octets at %p, access %#x: %s", length, addr, access,
			    strerror(error));
		return fail_with(error);
	}
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return fail_with(ENOMEM);
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	error = register_in_engine(c, mr, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access);
	if (error != 0) {
		forget(c, mr);
		return fail_with(error);
	}
	object_use(&pd_of(pd)->object);
	context_hold(c);
	return &mr->ibv;
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
	int error = client_command_handle(
		c->client, imported ? COMMAND_UNIMPORT_MR : COMMAND_DEREG_MR, ibv->handle);

	error = destroy_error(c, error);
	if (error != 0)
		return error;
	object_unuse(&pd_of(ibv->pd)->object);
	forget(c, (struct mr *)ibv);
	context_drop(c);
	return 0;
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access)
{
	return fail_with(EOPNOTSUPP);
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access)
{
	errno = EOPNOTSUPP;
	return IBV_REREG_MR_ERR_INPUT;
}
