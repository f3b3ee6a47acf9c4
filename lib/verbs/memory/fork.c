/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_fork_init(3) has nothing to do: no page is pinned, so copy-on-write cannot replace a pinned
 * page.
 */
#include "verbs/types.h"

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

EXPORT int ibv_fork_init(void)
{
	return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
