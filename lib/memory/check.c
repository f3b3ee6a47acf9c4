/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "base/bits.h"
#include "memory/check.h"

/* [address, address + length) inside the region; a sum could wrap (protocol-map 150). */
static inline bool range_in_region(const struct region *r, uint64_t address, uint64_t length)
{
	return address >= r->iova && range_inside(address - r->iova, length, r->length);
}

#define REMOTE                                                                                   \
	(ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL | \
	 ACCESS_FLUSH_PERSISTENT)

static inline bool kind_allows(const struct region *r, struct key_user user, uint32_t access)
{
	assert(r->kind <= REGION_NULL);
	if (r->kind == REGION_MEMORY)
		return true;
	if (r->kind == REGION_NULL)
		return (access & REMOTE) == 0;
	return (access & REMOTE) != 0 && (r->window_qpn == 0 || r->window_qpn == user.qpn);
}

static inline enum reason check(const struct key_table *t, uint32_t key, struct key_user user,
				uint32_t access, uint64_t address, uint64_t length,
				const struct region **found)
{
	const struct region *r = key_find(t, key);

	if (r == NULL)
		return REASON_KEY_UNKNOWN;
	if (r->pd != user.pd)
		return REASON_KEY_PD;
	if ((access & ~r->access) != 0 || !kind_allows(r, user, access))
		return REASON_KEY_ACCESS;
	if (!range_in_region(r, address, length))
		return REASON_KEY_RANGE;
	*found = r;
	return REASON_NONE;
}

/* Apart, so that key_check() saves no registers for it. */
static __attribute__((cold, noinline)) enum reason check_watched(const struct key_table *t,
								 uint32_t key, struct key_user user,
								 uint32_t access, uint64_t address,
								 uint64_t length,
								 const struct region **found)
{
	enum stage before = stage_enter(t->stages, STAGE_KEY);
	enum reason why = check(t, key, user, access, address, length, found);

	stage_enter(t->stages, before);
	return why;
}

enum reason key_check(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint64_t length,
		      const struct region **found)
{
	if (__builtin_expect(t->stages != NULL, 0))
		return check_watched(t, key, user, access, address, length, found);
	return check(t, key, user, access, address, length, found);
}

enum reason key_check_invalidate(const struct key_table *t, uint32_t key, struct key_user user)
{
	const struct region *r = key_find(t, key);

	if (r == NULL)
		return REASON_KEY_UNKNOWN;
	if (r->pd != user.pd)
		return REASON_KEY_PD;
	return r->kind == REGION_WINDOW && r->window_qpn == user.qpn ? REASON_NONE
								     : REASON_KEY_ACCESS;
}
