/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_rereg_mr(3). All wrong arguments are found here, before anything changes
 * (IBV_REREG_MR_ERR_INPUT: the region is unchanged). The fork codes are never returned, because
 * registered memory is safe across fork without madvise.
 */
#include <errno.h>

#include "verbs/memory/mapping.h"
#include "verbs/memory/mr.h"

#define FLAGS_KNOWN \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

/* The region's new properties. */
struct change {
	struct mr *mr;
	int flags;
	struct ibv_pd *pd;
	void *addr;
	size_t length;
	unsigned int access;
	struct promoted promoted;
};

static int check_flags(const struct change *g, const struct ibv_pd *pd, int access)
{
	/* Device memory has no other address, and an imported region belongs to another process. */
	if (g->mr->kind != MR_MEMORY || (g->mr->ibv.handle & MR_IMPORT_MARK) != 0)
		return EINVAL;
	if (g->flags == 0 || (g->flags & ~FLAGS_KNOWN) != 0)
		return EINVAL;
	if ((g->flags & IBV_REREG_MR_CHANGE_PD) &&
	    (pd == NULL || pd->context != g->mr->ibv.context))
		return EINVAL;
	return access != 0 && !(g->flags & IBV_REREG_MR_CHANGE_ACCESS) ? EINVAL : 0;
}

static int check_memory(const struct change *g)
{
	bool new_range = (g->flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
	struct ibv_mr *old = &g->mr->ibv;

	if (mr_is_implicit(old->addr, old->length, g->mr->access))
		return new_range || !(g->access & IBV_ACCESS_ON_DEMAND) ||
				       (g->access & IBV_ACCESS_HUGETLB)
			       ? EINVAL
			       : 0;
	if (new_range && g->addr == NULL)
		return EINVAL;
	if (new_range || (g->flags & IBV_REREG_MR_CHANGE_ACCESS))
		return mr_check_range(g->addr, g->length, g->access);
	return 0;
}

/* A request with room for all the parts that one message can name. */
union rereg {
	struct request_rereg_mr request;
	uint8_t octets[sizeof(struct request_rereg_mr) + BACKING_MAX * sizeof(struct mr_backing)];
};

static int change_in_engine(struct context *c, struct change *g, struct reply_reg_mr *reply)
{
	union rereg r = { .request = { .mr = g->mr->ibv.handle,
				       .flags = (uint32_t)g->flags,
				       .pd = g->pd->handle,
				       .access = g->access,
				       .address = (uintptr_t)g->addr,
				       .length = g->length,
				       .iova = (uintptr_t)g->addr } };
	int error = 0;

	if (attachment_gone(c->attachment))
		return ENODEV;
	if (g->flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		error = mr_promote(c, g->addr, g->length, g->access, r.request.backing,
				   &g->promoted);
	if (error != 0)
		return error;
	r.request.backings = g->promoted.region.count;
	r.request.leaves = g->promoted.region.leaves;
	return attachment_command(c->attachment, COMMAND_REREG_MR, &r.request.h,
				  sizeof(r.request) +
					  g->promoted.region.count * sizeof(struct mr_backing),
				  &reply->h, sizeof(*reply), NULL, NULL);
}

static void take_over(struct context *c, struct change *g, const struct reply_reg_mr *reply)
{
	struct ibv_mr *ibv = &g->mr->ibv;

	if (g->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		/* Not earlier, because the engine uses the old pages until it has answered. */
		mr_demote(c, &g->mr->promoted);
		g->mr->promoted = g->promoted;
	}
	verbs_object_use(&pd_of(g->pd)->object);
	verbs_object_unuse(&pd_of(ibv->pd)->object);
	ibv->pd = g->pd;
	ibv->addr = g->addr;
	ibv->length = g->length;
	ibv->lkey = reply->lkey;
	ibv->rkey = reply->rkey;
	g->mr->access = g->access;
}

static int fail_code(int error, int code)
{
	errno = error;
	return code;
}

EXPORT int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access)
{
	struct context *c = context_of(ibv->context);
	bool new_range = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
	struct change g = {
		.mr = mr_of(ibv),
		.flags = flags,
		.pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : ibv->pd,
		.addr = new_range ? addr : ibv->addr,
		.length = new_range ? length : ibv->length,
		.access = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned int)access
							     : mr_of(ibv)->access,
	};
	struct reply_reg_mr reply;
	int error = check_flags(&g, pd, access);

	if (error == 0)
		error = mr_check_access(g.access);
	if (error == 0)
		error = check_memory(&g);
	if (error != 0)
		return fail_code(error, IBV_REREG_MR_ERR_INPUT);
	g.access &= MR_ACCESS_KNOWN;
	error = change_in_engine(c, &g, &reply);
	if (error != 0) {
		mr_demote(c, &g.promoted);
		return fail_code(error, IBV_REREG_MR_ERR_CMD);
	}
	take_over(c, &g, &reply);
	return 0;
}
