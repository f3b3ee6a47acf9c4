/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread domains and parent domains. The engine knows neither. A parent domain's allocators cannot
 * provide the rings, because the engine must map those. They provide what the library keeps beside
 * the rings: the wr_ids of posted requests, batches, and the table of a CQ's queue pairs.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/memory/domain.h"

#define ALIGNMENT 64u

int domain_alloc(struct ibv_pd *pd, struct domain_memory *m, size_t octets,
		 enum domain_resource what)
{
	struct pd *d = pd != NULL ? pd_of(pd) : NULL;
	void *p = IBV_ALLOCATOR_USE_DEFAULT;

	octets = (octets + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (d != NULL && d->has_allocators)
		p = d->alloc(pd, d->pd_context, octets, ALIGNMENT, what);
	m->is_theirs = p != IBV_ALLOCATOR_USE_DEFAULT;
	if (!m->is_theirs)
		p = aligned_alloc(ALIGNMENT, octets);
	m->address = p;
	if (p == NULL)
		return ENOMEM;
	memset(p, 0, octets);
	return 0;
}

void domain_free(struct ibv_pd *pd, struct domain_memory *m, enum domain_resource what)
{
	struct pd *d = pd != NULL ? pd_of(pd) : NULL;

	if (m->address == NULL)
		return;
	if (m->is_theirs)
		d->free(pd, d->pd_context, m->address, what);
	else
		free(m->address);
	m->address = NULL;
}

struct ibv_td *verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr)
{
	struct td *td;

	if (init_attr == NULL || init_attr->comp_mask != 0)
		return fail_with(EINVAL);
	td = calloc(1, sizeof(*td));
	if (td == NULL)
		return fail_with(ENOMEM);
	td->ibv.context = context;
	context_hold(context_of(context));
	return &td->ibv;
}

int verbs_dealloc_td(struct ibv_td *ibv)
{
	struct context *c = context_of(ibv->context);
	struct td *td = (struct td *)ibv;

	if (verbs_object_busy(&td->object))
		return EBUSY;
	free(td);
	context_drop(c);
	return 0;
}

#define PARENT_KNOWN \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

static int check_parent(struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
	if (attr == NULL || attr->pd == NULL || attr->pd->context != context ||
	    (attr->td != NULL && attr->td->context != context))
		return EINVAL;
	if (attr->comp_mask & ~(uint32_t)PARENT_KNOWN)
		return EINVAL;
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (attr->alloc == NULL || attr->free == NULL))
		return EINVAL;
	return 0;
}

static void fill_parent(struct pd *d, struct ibv_context *context,
			const struct ibv_parent_domain_init_attr *attr)
{
	d->ibv.context = context;
	d->ibv.handle = attr->pd->handle;
	d->inner = attr->pd;
	d->td = (struct td *)attr->td;
	d->has_allocators = (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0;
	if (d->has_allocators) {
		d->alloc = attr->alloc;
		d->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		d->pd_context = attr->pd_context;
}

struct ibv_pd *verbs_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr)
{
	int error = check_parent(context, attr);
	struct pd *d;

	if (error != 0)
		return fail_with(error);
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return fail_with(ENOMEM);
	fill_parent(d, context, attr);
	verbs_object_use(&pd_of(d->inner)->object);
	if (d->td != NULL)
		verbs_object_use(&d->td->object);
	context_hold(context_of(context));
	return &d->ibv;
}
