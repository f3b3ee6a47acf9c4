/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a user of a key may do with it what is asked. */
#ifndef MEMORY_CHECK_H
#define MEMORY_CHECK_H

#include <stdint.h>

#include "base/reason.h"
#include "base/work.h"
#include "memory/key.h"

/* On whose behalf a key is used. */
struct key_user {
	uint32_t pd; /* number of the protection domain */
	uint32_t qpn; /* a type 2 window answers to one queue pair only */
};

/*
 * REASON_NONE, or the first of KEY_UNKNOWN, KEY_PD, KEY_ACCESS, KEY_RANGE that applies. `access`
 * without a remote flag (0: local read) is the queue pair's own: windows refuse it, and the null
 * region refuses every other.
 */
enum reason key_check(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint64_t length,
		      const struct region **found);

/*
 * Whether this queue pair may invalidate the key, by its own request or on its peer's behalf
 * (IBTA 10.6.5.1, protocol-map 161, 162): only a type 2 window that is bound through it.
 * REASON_NONE, KEY_UNKNOWN, KEY_PD or KEY_ACCESS.
 */
enum reason key_check_invalidate(const struct key_table *t, uint32_t key, struct key_user user);

#endif
