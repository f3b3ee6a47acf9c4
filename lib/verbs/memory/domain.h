/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread domains, parent domains, and the memory of queues that are made in one. */
#ifndef VERBS_DOMAIN_H
#define VERBS_DOMAIN_H

#include "verbs/types.h"

/* What the allocators of a parent domain are told: RDMA_DRIVER_UNKNOWN (0) in the high half. */
enum domain_resource {
	DOMAIN_QP = 1,
	DOMAIN_CQ = 2,
	DOMAIN_SRQ = 3,
	DOMAIN_WQ = 4,
};

/* pd: a PD, a parent domain, or NULL. Zeroed, aligned to 64 octets. 0 or ENOMEM. */
int domain_alloc(struct ibv_pd *pd, struct domain_memory *m, size_t octets,
		 enum domain_resource what);
void domain_free(struct ibv_pd *pd, struct domain_memory *m, enum domain_resource what);

/* What is made in a thread domain is used by one thread: the program promised it. */
static inline bool domain_is_single_threaded(struct ibv_pd *pd)
{
	return pd != NULL && pd_of(pd)->td != NULL;
}

static inline bool is_parent_domain(struct ibv_pd *pd)
{
	return pd_of(pd)->inner != NULL;
}

#endif
