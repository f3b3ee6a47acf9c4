/* SPDX-License-Identifier: BSD-3-Clause */
/* Without the secret a peer cannot choose a bucket, for groups or for anything else. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "wire/gid_hash.h"
#include "lcore/inside.h"

#define MANY	4096u
#define BUCKETS 256u

static struct engine engine;

static struct gid numbered(uint32_t at, uint32_t number)
{
	struct gid gid = { { 0xff, 0x0e } };

	for (uint32_t i = 0; i < 4; i++)
		gid.octet[(at + i) % 16] ^= (uint8_t)(number >> 8 * i);
	return gid;
}

/* The most of them in one bucket; 16 are the mean. */
static uint32_t fullest(struct gid (*make)(uint32_t seed, uint32_t number), uint32_t seed)
{
	uint32_t count[BUCKETS] = { 0 }, most = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		struct gid gid = make(seed, i);
		uint32_t n = ++count[mcast_bucket(&engine, &gid) - engine.mcast];

		most = n > most ? n : most;
	}
	return most;
}

/* hostile H-82: whichever octets an attacker changes. */
Test(gid_hash, groups_are_scattered)
{
	for (uint32_t at = 0; at < 16; at++)
		cr_expect_lt(fullest(numbered, at), 60, "octet %u: %u in one bucket", at,
			     fullest(numbered, at));
}

/* ... or which two parts, so that one cancels the other. */
static struct gid cancelling(uint32_t at, uint32_t number)
{
	struct gid gid = numbered(0, number);

	for (uint32_t i = 0; i < 4; i++)
		gid.octet[(at + i) % 16] ^= (uint8_t)(number >> 8 * i);
	return gid;
}

Test(gid_hash, parts_do_not_cancel_each_other)
{
	for (uint32_t at = 4; at <= 12; at += 4)
		cr_expect_lt(fullest(cancelling, at), 60);
}

static struct gid one_bucket[MANY];

static struct gid found(uint32_t seed, uint32_t number)
{
	return one_bucket[number];
}

/* hostile H-82: ... */
Test(gid_hash, collisions_of_another_engine_are_none_here)
{
	uint32_t n = 0;

	engine.hash_secret = UINT64_C(0x0123456789abcdef);
	for (uint32_t i = 0; n < MANY; i++) {
		struct gid gid = numbered(12, i);

		if (mcast_bucket(&engine, &gid) == engine.mcast)
			one_bucket[n++] = gid;
	}
	cr_expect_eq(fullest(found, 0), MANY);
	engine.hash_secret++;
	cr_expect_lt(fullest(found, 0), 60);
}

Test(gid_hash, all_of_it_counts)
{
	const struct gid gid = numbered(0, 1);
	uint64_t hash = gid_hash(5, &gid, 6);

	cr_expect_eq(gid_hash(5, &gid, 6), hash);
	cr_expect_neq(gid_hash(4, &gid, 6), hash);
	cr_expect_neq(gid_hash(5, &gid, 7), hash);
	for (uint32_t i = 0; i < 128; i++) {
		struct gid other = gid;

		other.octet[i / 8] ^= (uint8_t)(1u << i % 8);
		cr_expect_neq(gid_hash(5, &other, 6), hash, "bit %u", i);
	}
}
