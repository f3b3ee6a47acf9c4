/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks whether a user of a key has the right to do what it asks for. */
#ifndef MEMORY_CHECK_H
#define MEMORY_CHECK_H

#include <assert.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/reason.h"
#include "base/work.h"
#include "memory/key.h"

/* On whose behalf a key is used. */
struct key_user {
	uint32_t pd; /* number of the protection domain */
	uint32_t qpn; /* a type 2 window belongs to one queue pair */
};

/*
 * Returns REASON_NONE, or the first of KEY_UNKNOWN, KEY_PD, KEY_ACCESS, KEY_RANGE that applies. An
 * `access` without a remote flag (0: local read) is the queue pair's own access. Windows refuse
 * such access, and the null region refuses all other access.
 */
enum reason key_check(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint64_t length,
		      const struct region **found);

/*
 * Whether this queue pair may invalidate the key, by its own request or on its peer's behalf (IBTA
 * 10.6.5.1, protocol-map 161, 162). The key must be that of a type 2 window that is bound through
 * this queue pair. Returns REASON_NONE, KEY_UNKNOWN, KEY_PD or KEY_ACCESS.
 */
enum reason key_check_invalidate(const struct key_table *t, uint32_t key, struct key_user user);

/*
 * Whether [address, address + length) is inside the region. Adds nothing that could wrap
 * (protocol-map 150).
 */
static inline bool range_in_region(const struct region *r, uint64_t address, uint64_t length)
{
	return address >= r->iova && range_inside(address - r->iova, length, r->length);
}

#define ACCESS_REMOTE                                                                            \
	(ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL | \
	 ACCESS_FLUSH_PERSISTENT)

static inline bool kind_allows(const struct region *r, struct key_user user, uint32_t access)
{
	if (r->kind == REGION_MEMORY)
		return true;
	assert(r->kind <= REGION_NULL);
	if (r->kind == REGION_NULL)
		return (access & ACCESS_REMOTE) == 0;
	return (access & ACCESS_REMOTE) != 0 && (r->window_qpn == 0 || r->window_qpn == user.qpn);
}

/* key_check() without its stopwatch. Inline, because a call for each packet would cost too much. */
static inline enum reason key_look(const struct key_table *t, uint32_t key, struct key_user user,
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

/* Inline, too: calls key_check() only while somebody measures the stages. */
static inline enum reason key_check_here(const struct key_table *t, uint32_t key,
					 struct key_user user, uint32_t access, uint64_t address,
					 uint64_t length, const struct region **found)
{
	if (__builtin_expect(t->stages != NULL, 0))
		return key_check(t, key, user, access, address, length, found);
	return key_look(t, key, user, access, address, length, found);
}

#endif
