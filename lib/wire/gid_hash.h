/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash of GIDs that programs and peers choose. The hash has a secret, so that nobody can put
 * thousands of GIDs into one bucket, which an lcore would then search for each packet.
 */
#ifndef WIRE_GID_HASH_H
#define WIRE_GID_HASH_H

#include "base/bits.h"
#include "wire/packet.h"

/* The last steps of splitmix64. */
static inline uint64_t gid_hash_mix(uint64_t h)
{
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

/*
 * `with`: a number that also distinguishes entries. The steps are nested, so that a choice of one
 * part cannot cancel another.
 */
static inline uint64_t gid_hash(uint64_t secret, const struct gid *gid, uint64_t with)
{
	uint64_t h = gid_hash_mix(load_be64(gid->octet) ^ secret);

	h = gid_hash_mix(h ^ load_be64(gid->octet + 8));
	return gid_hash_mix(h ^ with ^ secret);
}

#endif
