/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A key-value store whose reads do not disturb its server. The server's table is registered memory:
 *
 *	table	| bucket 0 | bucket 1 | ... | bucket n - 1 |  KV_PROBES - 1 more
 *
 * A key is in one of the KV_PROBES buckets from `kv_hash(key) % n` on. A client GETs it with one RDMA
 * READ of those; no thread of the server runs. It PUTs and DELetes by a message, which the server
 * answers. A READ may meet a change: a bucket's sum does not fit then, and the client reads again.
 */
#ifndef KV_H
#define KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KV_KEY	   56 /* octets at most */
#define KV_VALUE   176
#define KV_PROBES  4
#define KV_BUCKETS 16384
#define KV_SERVICE "7472"

struct kv_bucket {
	uint64_t sum; /* kv_sum(); an empty bucket is all zero */
	uint32_t version; /* grows with each change */
	uint16_t key_length; /* 0: empty */
	uint16_t value_length;
	char key[KV_KEY];
	char value[KV_VALUE];
	uint64_t unused;
};

enum kv_what {
	KV_PUT = 1,
	KV_DELETE = 2
};

/* A message to the server. One host's order: both ends are of one kind here. */
struct kv_request {
	uint32_t what;
	uint16_t key_length, value_length;
	char key[KV_KEY];
	char value[KV_VALUE];
};

struct kv_reply {
	int32_t error; /* 0, ENOENT, ENOSPC or EINVAL */
};

/* What the server tells a client with rdma_accept(). */
struct kv_place {
	uint64_t table;
	uint32_t rkey;
	uint32_t buckets;
};

/* FNV-1a, 64 bits. */
static inline uint64_t kv_hash_from(uint64_t h, const void *octets, size_t n)
{
	const unsigned char *o = octets;

	for (size_t i = 0; i < n; i++)
		h = (h ^ o[i]) * UINT64_C(0x100000001b3);
	return h;
}

static inline uint64_t kv_hash(const void *key, size_t n)
{
	return kv_hash_from(UINT64_C(0xcbf29ce484222325), key, n);
}

/* Sums all but the sum itself, as far as it is used. The lengths are right. */
static inline uint64_t kv_sum(const struct kv_bucket *b)
{
	uint64_t h = kv_hash(&b->version, offsetof(struct kv_bucket, key) - sizeof(b->sum));

	h = kv_hash_from(h, b->key, b->key_length);
	return kv_hash_from(h, b->value, b->value_length);
}

/* Whether a bucket was read while it did not change. */
static inline bool kv_is_whole(const struct kv_bucket *b)
{
	if (b->key_length == 0 && b->sum == 0)
		return true;
	return b->key_length <= KV_KEY && b->value_length <= KV_VALUE && b->sum == kv_sum(b);
}

#endif
