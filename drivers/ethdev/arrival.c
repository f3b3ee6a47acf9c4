/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computes receive-side scaling in advance. The device hashes addresses and UDP ports (Toeplitz).
 * The low bits of the hash choose an entry of its indirection table, and the entry names the queue.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_thash.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"

#define KEY_MOST     64u /* octets; most devices have 40 or 52 */
#define KEY_LEAST    40u /* for two IPv6 addresses and two ports */
#define ENTRIES_MOST 1024u
#define HASHES_A_PART                                                                  \
	(RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L3_DST_ONLY | RTE_ETH_RSS_L4_SRC_ONLY | \
	 RTE_ETH_RSS_L4_DST_ONLY)

struct arrival {
	uint64_t fields; /* RTE_ETH_RSS_... */
	uint16_t entries; /* a power of two */
	uint16_t queue[ENTRIES_MOST];
	uint8_t key[KEY_MOST] __attribute__((aligned(4))); /* rte_softrss reads words of it */
};

static bool learn_hash(struct arrival *a, uint16_t id, const struct rte_eth_dev_info *info)
{
	struct rte_eth_rss_conf c = { .rss_key = a->key,
				      .rss_key_len = info->hash_key_size != 0 ? info->hash_key_size
									      : KEY_LEAST };

	if (c.rss_key_len < KEY_LEAST || c.rss_key_len > KEY_MOST ||
	    rte_eth_dev_rss_hash_conf_get(id, &c) != 0)
		return false;
	a->fields = c.rss_hf;
	return (c.rss_hf & HASHES_A_PART) == 0;
}

static bool learn_table(struct arrival *a, uint16_t id, uint16_t entries)
{
	struct rte_eth_rss_reta_entry64 group[ENTRIES_MOST / RTE_ETH_RETA_GROUP_SIZE];

	if (entries == 0 || entries > ENTRIES_MOST || (entries & (entries - 1)) != 0)
		return false;
	memset(group, 0, sizeof(group));
	for (uint32_t i = 0; i < ARRAY_SIZE(group); i++)
		group[i].mask = UINT64_MAX;
	if (rte_eth_dev_rss_reta_query(id, group, entries) != 0)
		return false;
	for (uint32_t i = 0; i < entries; i++)
		a->queue[i] = group[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
	a->entries = entries;
	return true;
}

struct arrival *arrival_learn(uint16_t id)
{
	struct arrival *a = calloc(1, sizeof(*a));
	struct rte_eth_dev_info info;

	if (a != NULL && rte_eth_dev_info_get(id, &info) == 0 && learn_hash(a, id, &info) &&
	    learn_table(a, id, info.reta_size))
		return a;
	free(a);
	return NULL;
}

/* Appends the words of the address in RSS's order. Returns how many there are. */
static uint32_t put_address(uint32_t *to, const struct gid *gid)
{
	uint32_t first = gid_is_ipv4(gid) ? 12 : 0, words = 0;

	for (uint32_t at = first; at < 16; at += 4)
		to[words++] = load_be32(gid->octet + at);
	return words;
}

/*
 * How many words the device hashes: addresses and ports, or only addresses. 0: it does not hash
 * such packets.
 */
static uint32_t hashed(const struct arrival *a, bool ipv4, uint32_t addresses)
{
	uint64_t udp = ipv4 ? RTE_ETH_RSS_NONFRAG_IPV4_UDP : RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	uint64_t ip = ipv4 ? RTE_ETH_RSS_IPV4 : RTE_ETH_RSS_IPV6;

	if (a->fields & udp)
		return addresses + 1;
	return a->fields & ip ? addresses : 0;
}

uint16_t arrival_queue(const struct arrival *a, const struct gid *from, const struct gid *to,
		       uint16_t source_port)
{
	uint32_t word[9], n, words;

	n = put_address(word, from);
	n += put_address(word + n, to);
	word[n] = (uint32_t)source_port << 16 | ROCE_UDP_PORT;
	words = hashed(a, n == 2, n);
	if (words == 0)
		return UINT16_MAX;
	return a->queue[rte_softrss(word, words, a->key) & (a->entries - 1u)];
}
