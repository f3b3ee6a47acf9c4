/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_MR_H
#define VERBS_MR_H

#include "verbs/types.h"

#define MR_ACCESS_WRITES \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
/* What is passed on to the engine; hints of IBV_ACCESS_OPTIONAL_RANGE may be ignored, and are. */
#define MR_ACCESS_KNOWN                                                                           \
	(MR_ACCESS_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | ACCESS_FLUSH_GLOBAL)

static inline struct mr *mr_of(struct ibv_mr *mr)
{
	return (struct mr *)mr;
}

/* All memory, on demand (ibv_reg_mr(3)). */
static inline bool mr_is_implicit(const void *addr, size_t length, unsigned int access)
{
	return addr == NULL && length == SIZE_MAX && (access & IBV_ACCESS_ON_DEMAND);
}

/* 0, or EINVAL: unknown flags, or remote writing without local writing. */
int mr_check_access(unsigned int access);
/* 0, EINVAL or EFAULT: the range is none, or its pages do not allow that access. */
int mr_check_range(const void *addr, size_t length, unsigned int access);

/*
 * Moves what can be moved of the range to where the engine maps it; at most BACKING_MAX parts,
 * named in `named` and kept in `p`, to be given up with mr_demote. Pages that come on demand stay
 * where they are. 0 or ENOMEM.
 */
int mr_promote(struct context *c, void *addr, size_t length, unsigned int access,
	       struct mr_backing *named, struct promoted *p);
void mr_demote(struct context *c, struct promoted *p);

#endif
