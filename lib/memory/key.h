/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys. The index part of a key is a secret permutation of a dense slot number, so that keys seen
 * on the wire tell nothing of the next one; the low eight bits are a random variant, so that a
 * reused slot does not honour an old key.
 *
 * The table is read by lcores without locks and written by the control path alone: a slot's
 * pointer is stored with release order after the region is complete, and a region that was taken
 * out may still be read until every lcore has passed a quiescent state.
 */
#ifndef MEMORY_KEY_H
#define MEMORY_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "base/work.h"
#include "memory/region.h"
#include "memory/span.h"

struct key_table {
	const struct region **slot; /* `slots` pointers, owner: who called key_table_init */
	uint32_t slots; /* at most 2^24 */
	uint32_t first_free; /* control path only */
	uint32_t *next_free; /* control path only: FIFO of free slots, so that reuse is late */
	uint32_t last_free;
	uint32_t secret[4];
};

/* Octets that key_table_init needs at `memory` for that many slots. */
size_t key_table_size(uint32_t slots);

/* `random` seeds the permutation: 16 octets of a cryptographic generator. */
void key_table_init(struct key_table *t, void *memory, uint32_t slots, const uint8_t random[16]);

/*
 * Takes a free slot and returns its key with the given variant in the low eight bits, or 0 when
 * the table is full (no key is ever 0). The slot stays empty until key_publish.
 */
uint32_t key_allocate(struct key_table *t, uint8_t variant);
void key_publish(struct key_table *t, uint32_t key, const struct region *r);
/* Takes the region out (returned, to be retired by the caller); the slot stays taken. */
const struct region *key_withdraw(struct key_table *t, uint32_t key);
/* The slot may be reused from now on. Call after the grace period. */
void key_free(struct key_table *t, uint32_t key);

/* The slot of a key, whatever its variant; not less than `slots` if there is none. */
uint32_t key_slot(const struct key_table *t, uint32_t key);

/* The region that answers to exactly this key, or NULL. */
const struct region *key_find(const struct key_table *t, uint32_t key);

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

/* key_check, and the spans of [address, address + length) are appended to *spans. */
enum reason key_spans(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint32_t length, struct span_list *spans);

/*
 * The spans of `length` octets that begin `offset` octets into a scatter/gather list; every
 * element that is touched is checked. Zero-length elements are skipped and not checked.
 */
enum reason key_spans_of_list(const struct key_table *t, const struct work_sge *sge,
			      uint32_t num_sge, struct key_user user, uint32_t access,
			      uint64_t offset, uint32_t length, struct span_list *spans);

/*
 * Whether this queue pair may invalidate the key, by its own request or on its peer's behalf
 * (IBTA 10.6.5.1, protocol-map 161, 162): only a type 2 window that is bound through it.
 * REASON_NONE, KEY_UNKNOWN, KEY_PD or KEY_ACCESS.
 */
enum reason key_check_invalidate(const struct key_table *t, uint32_t key, struct key_user user);

#endif
