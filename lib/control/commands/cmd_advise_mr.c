/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_advise_mr(3): finds the memory that the elements name and checks access to it. There is
 * nothing to prepare: an engine that reaches memory through the client's address space has no
 * translations.
 */
#include <errno.h>

#include "control/control.h"

struct advise {
	struct call *call;
	const struct request_advise_mr *request;
	uint32_t pd; /* number */
	int error;
};

/* As in the manual page; where that contradicts itself, as mlx5 does. */
static int check_element(const struct advise *a, const struct work_sge *sge,
			 const struct region **found)
{
	const struct region *r = key_find(&a->call->engine->keys, sge->lkey);
	bool writes = a->request->advice == ADVICE_PREFETCH_WRITE;
	const struct region *checked;

	/* keys of other programs are treated as unknown */
	if (r == NULL || r->client != a->call->client->number)
		return call_fail(a->call, EFAULT, "no region has lkey 0x%x", sge->lkey);
	if (r->pd != a->pd)
		return call_fail(a->call, EPERM, "lkey 0x%x belongs to another protection domain",
				 sge->lkey);
	if (r->kind == REGION_WINDOW)
		return call_fail(a->call, EINVAL, "key 0x%x belongs to a memory window", sge->lkey);
	if (!(r->access & ACCESS_ON_DEMAND))
		return call_fail(a->call, ENOENT,
				 "region 0x%x is not registered with IBV_ACCESS_ON_DEMAND",
				 sge->lkey);
	if (writes && !(r->access & ACCESS_LOCAL_WRITE))
		return call_fail(a->call, EPERM, "region 0x%x does not allow writes", sge->lkey);
	if (key_check(&a->call->engine->keys, sge->lkey, (struct key_user){ .pd = a->pd }, 0,
		      sge->addr, sge->length, &checked) != REASON_NONE)
		return call_fail(a->call, EFAULT, "the range is outside region 0x%x", sge->lkey);
	*found = r;
	return 0;
}

/*
 * Runs on an lcore, because a window that is bound meanwhile would change under the control path.
 */
static void check_elements(struct lcore *l, void *arg, nanotime now)
{
	struct advise *a = arg;
	struct reply_advise_mr *reply = (struct reply_advise_mr *)&a->call->reply;

	for (uint32_t i = 0; i < a->request->num_sge && a->error == 0; i++) {
		const struct work_sge *sge = &a->request->sge[i];
		const struct region *r = NULL;

		a->error = check_element(a, sge, &r);
		if (a->error == 0)
			reply->address[i] = r->piece[0].peer_address + (sge->addr - r->iova);
	}
}

int cmd_advise_mr(struct call *call)
{
	const struct request_advise_mr *r = (const struct request_advise_mr *)call->request;
	const struct pd *p = object_find(call->client, OBJECT_PD, r->pd);
	struct advise a = { .call = call, .request = r };

	if (p == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	if (r->advice > ADVICE_PREFETCH_NO_FAULT)
		return call_fail(call, EOPNOTSUPP, "unknown advice %u", r->advice);
	if (r->num_sge == 0 || r->num_sge > ADVISE_MAX)
		return call_fail(call, EINVAL, "num_sge %u is out of range", r->num_sge);
	a.pd = p->number;
	lcore_call(&call->engine->lcore[0], check_elements, &a);
	return a.error;
}
