/* SPDX-License-Identifier: BSD-3-Clause */
#include "flows.h"

#include <stdlib.h>
#include <string.h>

#include <rte_hash.h>
#include <rte_jhash.h>
#include <rte_lcore.h>

struct flow_table {
	struct rte_hash *index; /* key -> position in flow[] */
	uint32_t used; /* atomic: the forwarding thread appends, others read */
	struct flow flow[FLOWS];
};

struct flow_table *flows_create(void)
{
	struct rte_hash_parameters p = { .name = "flows",
					 .entries = 2 * FLOWS,
					 .key_len = sizeof(struct flow_key),
					 .hash_func = rte_jhash,
					 .socket_id = (int)rte_socket_id() };
	struct flow_table *t = aligned_alloc(64, sizeof(*t) + 64 - sizeof(*t) % 64);

	if (t == NULL)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->index = rte_hash_create(&p);
	if (t->index != NULL)
		return t;
	free(t);
	return NULL;
}

static struct flow *find_or_add(struct flow_table *t, const struct flow_key *key)
{
	uint32_t used = t->used;
	void *position;

	if (rte_hash_lookup_data(t->index, key, &position) >= 0)
		return &t->flow[(uintptr_t)position];
	if (used == FLOWS || rte_hash_add_key_data(t->index, key, (void *)(uintptr_t)used) != 0)
		return NULL;
	t->flow[used].key = *key;
	__atomic_store_n(&t->used, used + 1, __ATOMIC_RELEASE); /* pairs with flows_used() */
	return &t->flow[used];
}

void flows_count(struct flow_table *t, const struct flow_key *key, uint32_t octets)
{
	struct flow *f = find_or_add(t, key);

	if (f == NULL)
		return;
	/* One writer: whole words, so that a concurrent reader sees no torn number. */
	__atomic_store_n(&f->packets, f->packets + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&f->octets, f->octets + octets, __ATOMIC_RELAXED);
}

struct flow *flows_used(struct flow_table *t, uint32_t *n)
{
	*n = __atomic_load_n(&t->used, __ATOMIC_ACQUIRE);
	return t->flow;
}
