/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/check.h"

/* A function of its own, so that key_check() saves no registers for it. */
static __attribute__((cold, noinline)) enum reason check_watched(const struct key_table *t,
								 uint32_t key, struct key_user user,
								 uint32_t access, uint64_t address,
								 uint64_t length,
								 const struct region **found)
{
	enum stage before = stage_enter(t->stages, STAGE_KEY);
	enum reason why = key_look(t, key, user, access, address, length, found);

	stage_enter(t->stages, before);
	return why;
}

enum reason key_check(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint64_t length,
		      const struct region **found)
{
	if (__builtin_expect(t->stages != NULL, 0))
		return check_watched(t, key, user, access, address, length, found);
	return key_look(t, key, user, access, address, length, found);
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
