/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "lcore/raw/flow_table.h"

/* Normal rules come first, by priority. The others follow in any order. */
static uint64_t place_of(const struct flow_rule *r)
{
	return r->kind == FLOW_NORMAL ? r->priority : UINT64_MAX;
}

void flow_table_add(struct flow_table *t, const struct flow_rule *rule)
{
	uint32_t at = t->count;

	while (at > 0 && place_of(&t->rule[at - 1]) > place_of(rule))
		at--;
	memmove(&t->rule[at + 1], &t->rule[at], (t->count - at) * sizeof(*rule));
	t->rule[at] = *rule;
	t->count++;
	t->normal += rule->kind == FLOW_NORMAL;
	t->sniffers += rule->kind == FLOW_SNIFFER;
}

static bool sees(const struct flow_rule *r, const struct raw_frame *f)
{
	uint64_t value[FLOW_KEY_WORDS], mask[FLOW_KEY_WORDS], key[FLOW_KEY_WORDS];
	uint64_t other = 0;

	if ((f->layers & r->layers) != r->layers)
		return false;
	memcpy(value, &r->value, sizeof(value));
	memcpy(mask, &r->mask, sizeof(mask));
	memcpy(key, &f->key, sizeof(key));
	for (uint32_t i = 0; i < FLOW_KEY_WORDS; i++)
		other |= (key[i] ^ value[i]) & mask[i];
	return other == 0;
}

static void add(struct flow_match *m, const struct flow_rule *r)
{
	if (m->count < LIMIT_FLOW_COPIES)
		m->rule[m->count++] = r;
}

/* A drop rule matched: no other rule of this priority gets the frame. */
static void keep_drops(struct flow_match *m, uint32_t first)
{
	uint32_t kept = first;

	for (uint32_t i = first; i < m->count; i++)
		if (m->rule[i]->actions & FLOW_DROP)
			m->rule[kept++] = m->rule[i];
	m->count = kept;
}

static void match_normal(const struct flow_table *t, const struct raw_frame *f,
			 struct flow_match *m)
{
	for (uint32_t i = 0; i < t->normal && !m->taken;) {
		uint32_t priority = t->rule[i].priority, first = m->count;
		bool drop = false;

		for (; i < t->normal && t->rule[i].priority == priority; i++) {
			const struct flow_rule *r = &t->rule[i];

			if (!sees(r, f))
				continue;
			add(m, r);
			drop |= (r->actions & FLOW_DROP) != 0;
			m->taken |= (r->actions & FLOW_DONT_TRAP) == 0;
		}
		m->taken |= drop;
		if (drop)
			keep_drops(m, first);
	}
}

void flow_table_match(const struct flow_table *t, const struct raw_frame *f, bool roce,
		      struct flow_match *m)
{
	bool multicast = (f->key.dst_mac[0] & 1) != 0, by_default;

	m->count = 0;
	m->taken = false;
	if (roce && t->sniffers == 0)
		return;
	if (!roce)
		match_normal(t, f, m);
	by_default = !roce && !m->taken && (f->layers & FLOW_LAYER_ETH) != 0;
	for (uint32_t i = t->normal; i < t->count; i++) {
		const struct flow_rule *r = &t->rule[i];
		bool mine = by_default && (r->kind == FLOW_ALL_DEFAULT ||
					   (r->kind == FLOW_MC_DEFAULT && multicast));

		if (r->kind == FLOW_SNIFFER || mine)
			add(m, r);
		m->taken |= mine;
	}
}
