/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread domains, parent domains (ibv_alloc_parent_domain(3)), and the memory of queues in them. */
#ifndef VERBS_DOMAIN_H
#define VERBS_DOMAIN_H

#include "verbs/types.h"

/* resource_type of a parent domain's allocators; the high half is RDMA_DRIVER_UNKNOWN (0). */
enum domain_resource {
	DOMAIN_QP = 1,
	DOMAIN_CQ = 2,
	DOMAIN_SRQ = 3,
	DOMAIN_WQ = 4,
};

/*
 * Allocates zeroed memory, aligned to 64 octets, from the allocator of `pd` if it has one. `pd` may
 * be a PD, a parent domain or NULL. Returns 0 or ENOMEM. domain_free gives the memory back; it does
 * nothing if the address is NULL.
 */
int domain_alloc(struct ibv_pd *pd, struct domain_memory *m, size_t octets,
		 enum domain_resource what);
void domain_free(struct ibv_pd *pd, struct domain_memory *m, enum domain_resource what);

/* In a thread domain the program promises to use each object from one thread at a time. */
static inline bool domain_is_single_threaded(struct ibv_pd *pd)
{
	return pd != NULL && pd_of(pd)->td != NULL;
}

/* Whether they stand for one protection domain: a parent domain stands for the one inside it. */
static inline bool is_same_domain(const struct ibv_pd *a, const struct ibv_pd *b)
{
	return a->context == b->context && a->handle == b->handle;
}

static inline bool is_parent_domain(struct ibv_pd *pd)
{
	return pd_of(pd)->inner != NULL;
}

#endif
