/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups and their members. Only the control path changes the table; lcores walk it
 * whenever a datagram for a group comes:
 *
 *	a group is linked in by a release store when it is complete, unlinked by another, and freed
 *	after a grace period; its slots for members are pointers that are set and cleared one by one.
 *
 * A datagram goes to the lcores of all members as copies, because the GRH is written over its
 * headers; on one lcore all members read the same buffer, a reference each.
 */
#include "base/bits.h"
#include "lcore/inside.h"
#include "wire/gid_hash.h"

struct mcast_group **mcast_bucket(struct engine *e, const struct gid *gid)
{
	return &e->mcast[gid_hash(e->hash_secret, gid, 0) >> 56];
}

struct mcast_group *mcast_find(struct engine *e, const struct gid *gid)
{
	static_assert(ARRAY_SIZE(e->mcast) == 256, "eight bits of a hash");
	struct mcast_group *g = __atomic_load_n(mcast_bucket(e, gid), __ATOMIC_ACQUIRE);

	while (g != NULL && !gid_equal(&g->gid, gid))
		g = __atomic_load_n(&g->next, __ATOMIC_ACQUIRE);
	return g;
}

bool mcast_is_member(struct engine *e, const struct gid *gid, const struct engine_qp *q)
{
	const struct mcast_group *g = mcast_find(e, gid);

	for (uint32_t i = 0; g != NULL && i < LIMIT_MCAST_QPS; i++)
		if (mcast_member(g, i) == q)
			return true;
	return false;
}
