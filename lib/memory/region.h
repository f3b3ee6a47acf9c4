/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memory region as the data path reads it. It does not change once it is in the key table, except
 * that its number of windows changes and that pieces may become peer memory. The control path
 * replaces it as a whole, and frees the old one after a grace period of every lcore (lib/control).
 *
 *	iova                                              iova + length
 *	|--- piece 0 (peer) ---|---- piece 1 (direct) ----|- piece 2 -|
 *	offset 0               piece[1].offset
 */
#ifndef MEMORY_REGION_H
#define MEMORY_REGION_H

#include <stdint.h>

/*
 * A part of a region whose octets are all reached in the same way. Pieces are sorted and cover the
 * region.
 */
struct region_piece {
	uint64_t offset; /* of the piece's first octet in the region */
	void *direct; /* that octet in the engine; NULL: peer; atomic, it may become NULL */
	uint64_t peer_address; /* that octet's address in the client's address space */
};

enum region_kind {
	REGION_MEMORY, /* memory of an application, or device memory */
	REGION_WINDOW, /* a bound memory window: a part of another region, for remote access only */
	REGION_NULL, /* reads as zeros, ignores writes; for local access only */
};

struct region {
	uint32_t key; /* lkey and rkey: 24 bits of index, 8 of variant */
	uint32_t pd; /* number of the protection domain */
	uint32_t access; /* enum access_flag */
	uint32_t client; /* its address space holds the peer pieces */
	uint32_t context; /* the client's context; its windows are of the same context */
	uint64_t iova; /* the first octet's address in work requests (0 if zero-based) */
	uint64_t length; /* octets */
	uint8_t kind; /* enum region_kind */
	uint32_t window_qpn; /* REGION_WINDOW, type 2: the one queue pair that may use it; else 0 */
	const struct region *parent; /* REGION_WINDOW: the region whose pieces it uses ... */
	uint64_t parent_offset; /* ... from this octet of it on */
	uint32_t windows; /* REGION_MEMORY: windows bound to it; atomic, see region_windows */
	uint32_t pieces; /* at least 1; 0 for REGION_WINDOW and REGION_NULL */
	struct region_piece piece[];
};

/* Acquire: a thread that sees the last window gone also sees all accesses through it. */
static inline uint32_t region_windows(const struct region *r)
{
	return __atomic_load_n(&r->windows, __ATOMIC_ACQUIRE);
}

static inline void region_window_bound(struct region *r)
{
	__atomic_fetch_add(&r->windows, 1, __ATOMIC_RELAXED);
}

static inline void region_window_unbound(struct region *r)
{
	__atomic_fetch_sub(&r->windows, 1, __ATOMIC_RELEASE);
}

#endif
