/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_MR_H
#define VERBS_MR_H

#include "verbs/types.h"

#define MR_ACCESS_WRITES \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
/* The flags that are passed on to the engine. Hints (IBV_ACCESS_OPTIONAL_RANGE) are ignored. */
#define MR_ACCESS_KNOWN                                                                           \
	(MR_ACCESS_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | ACCESS_FLUSH_GLOBAL)

static inline struct mr *mr_of(struct ibv_mr *mr)
{
	return (struct mr *)mr;
}

/* Whether the region is an implicit on-demand region: all memory of the process (ibv_reg_mr(3)). */
static inline bool mr_is_implicit(const void *addr, size_t length, unsigned int access)
{
	return addr == NULL && length == SIZE_MAX && (access & IBV_ACCESS_ON_DEMAND);
}

/* Returns 0; EINVAL: unknown flags, or remote writing without local writing; EOPNOTSUPP. */
int mr_check_access(unsigned int access);
/* Returns 0; EINVAL: it is not a range; EFAULT: its pages do not allow that access. */
int mr_check_range(const void *addr, size_t length, unsigned int access);

/*
 * Promotes what can be promoted of the range (drivers/client_memory/promote.h). Names at most
 * BACKING_MAX promoted parts in `named` for the request, and keeps them in `p` for mr_demote.
 * On-demand pages are not promoted. Returns 0 or ENOMEM.
 */
int mr_promote(struct context *c, void *addr, size_t length, unsigned int access,
	       struct mr_backing *named, struct promoted *p);
void mr_demote(struct context *c, struct promoted *p);

#endif
