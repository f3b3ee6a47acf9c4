/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static struct kv_bucket table[KV_BUCKETS + KV_PROBES - 1] __attribute__((aligned(4096)));
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

_Static_assert(sizeof(struct kv_bucket) == 256, "four cache lines");

void *table_memory(size_t *octets)
{
	*octets = sizeof(table);
	return table;
}

/* The bucket of the key; else the first free one, else NULL. */
static struct kv_bucket *find(const struct kv_request *r)
{
	struct kv_bucket *b = &table[kv_hash(r->key, r->key_length) % KV_BUCKETS], *empty = NULL;

	for (int i = 0; i < KV_PROBES; i++) {
		if (b[i].key_length == r->key_length &&
		    memcmp(b[i].key, r->key, r->key_length) == 0)
			return &b[i];
		if (b[i].key_length == 0 && empty == NULL)
			empty = &b[i];
	}
	return empty;
}

/* Readers that meet this see a sum that does not fit. */
static void put(struct kv_bucket *b, const struct kv_request *r)
{
	b->version++;
	b->key_length = r->key_length;
	b->value_length = r->value_length;
	memcpy(b->key, r->key, r->key_length);
	memcpy(b->value, r->value, r->value_length);
	b->sum = kv_sum(b);
}

static void delete (struct kv_bucket *b)
{
	b->key_length = 0;
	b->sum = 0;
}

int table_apply(const struct kv_request *r)
{
	struct kv_bucket *b;
	int error = 0;

	if (r->key_length == 0 || r->key_length > KV_KEY || r->value_length > KV_VALUE)
		return EINVAL;
	pthread_mutex_lock(&lock);
	b = find(r);
	if (r->what == KV_PUT && b != NULL)
		put(b, r);
	else if (r->what == KV_PUT)
		error = ENOSPC;
	else if (r->what == KV_DELETE && b != NULL && b->key_length != 0)
		delete (b);
	else
		error = r->what == KV_DELETE ? ENOENT : EINVAL;
	pthread_mutex_unlock(&lock);
	return error;
}
