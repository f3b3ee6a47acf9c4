/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_thash.h>

#include "base/bits.h"
#include "lcore/raw/raw_hash.h"

#define TUPLE_WORDS 9u /* two IPv6 addresses and two ports */

/* The input of the Toeplitz function, octets in the order in which they are hashed. */
struct tuple {
	uint8_t octet[TUPLE_WORDS * 4];
	uint32_t length;
};

static void append(struct tuple *t, bool chosen, const uint8_t *from, uint32_t length)
{
	if (!chosen)
		return;
	memcpy(t->octet + t->length, from, length);
	t->length += length;
}

uint32_t raw_hash(const struct raw_frame *f, uint32_t fields, const uint8_t key[RSS_KEY_LENGTH])
{
	bool v4 = f->layers & FLOW_LAYER_IPV4, v6 = f->layers & FLOW_LAYER_IPV6;
	bool tcp = f->layers & FLOW_LAYER_TCP, udp = f->layers & FLOW_LAYER_UDP;
	uint32_t src = (v4 ? RSS_SRC_IPV4 : 0u) | (v6 ? RSS_SRC_IPV6 : 0u);
	uint32_t dst = (v4 ? RSS_DST_IPV4 : 0u) | (v6 ? RSS_DST_IPV6 : 0u);
	uint32_t src_port = (tcp ? RSS_SRC_PORT_TCP : 0u) | (udp ? RSS_SRC_PORT_UDP : 0u);
	uint32_t dst_port = (tcp ? RSS_DST_PORT_TCP : 0u) | (udp ? RSS_DST_PORT_UDP : 0u);
	uint32_t address = v6 ? 16 : 4, word[TUPLE_WORDS];
	struct tuple t = { .length = 0 };

	append(&t, (fields & src) != 0, f->key.src_ip, address);
	append(&t, (fields & dst) != 0, f->key.dst_ip, address);
	/*
	 * Ports are left out of fragments, because only the first fragment of a packet has them. So
	 * all fragments of a packet go to the same entry.
	 */
	append(&t, (fields & src_port) != 0 && !f->fragment, f->key.src_port, 2);
	append(&t, (fields & dst_port) != 0 && !f->fragment, f->key.dst_port, 2);
	/* The last word is filled up with zeros, which do not change the hash. */
	for (uint32_t i = 0; i < TUPLE_WORDS; i++)
		word[i] = load_be32(t.octet + (size_t)i * 4);
	return rte_softrss(word, (t.length + 3) / 4, key);
}
