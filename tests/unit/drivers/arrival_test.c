/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue at which a packet arrives, computed. It is compared with the hashes that Microsoft
 * published to verify RSS, and with net_null's table, whose key is set to theirs.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"

#define QUEUES 4u

static uint8_t key[40] = { 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
			   0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
			   0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
			   0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa };
static uint16_t id;
static uint64_t also; /* the fields by which the device hashes, as it reports them */

int __real_rte_eth_dev_rss_hash_conf_get(uint16_t port, struct rte_eth_rss_conf *c);
int __wrap_rte_eth_dev_rss_hash_conf_get(uint16_t port, struct rte_eth_rss_conf *c);

int __wrap_rte_eth_dev_rss_hash_conf_get(uint16_t port, struct rte_eth_rss_conf *c)
{
	int error = __real_rte_eth_dev_rss_hash_conf_get(port, c);

	c->rss_hf |= also;
	return error;
}

static void start(uint64_t fields)
{
	struct rte_mempool *pool = rte_mempool_lookup("arrival");
	struct rte_eth_conf c = { .rxmode.mq_mode = RTE_ETH_MQ_RX_RSS,
				  .rx_adv_conf.rss_conf = { key, sizeof(key), fields } };

	if (pool == NULL)
		pool = rte_pktmbuf_pool_create("arrival", 255, 0, 0, 256, SOCKET_ID_ANY);
	cr_assert_not_null(pool);
	cr_assert_eq(rte_eth_dev_stop(id), 0);
	cr_assert_eq(rte_eth_dev_configure(id, QUEUES, QUEUES, &c), 0);
	for (uint16_t i = 0; i < QUEUES; i++) {
		cr_assert_eq(rte_eth_rx_queue_setup(id, i, 64, SOCKET_ID_ANY, NULL, pool), 0);
		cr_assert_eq(rte_eth_tx_queue_setup(id, i, 64, SOCKET_ID_ANY, NULL), 0);
	}
	cr_assert_eq(rte_eth_dev_start(id), 0);
	/* the driver's own key is random; the fields are those that were asked for */
	cr_assert_eq(rte_eth_dev_rss_hash_update(id, &c.rx_adv_conf.rss_conf), 0);
}

static void begin(void)
{
	static char prefix[64];
	char *arguments[] = { (char *)"arrival_test", (char *)"--no-huge", (char *)"--no-shconf",
			      (char *)"--no-pci",     (char *)"-m",	   (char *)"64",
			      (char *)"-l",	      (char *)"0",	   prefix };

	snprintf(prefix, sizeof(prefix), "--file-prefix=arrival_test_%d", (int)getpid());
	cr_assert_geq(rte_eal_init(ARRAY_SIZE(arguments), arguments), 0, "EAL");
	cr_assert_eq(rte_vdev_init("net_null0", NULL), 0);
	cr_assert_eq(rte_eth_dev_get_port_by_name("net_null0", &id), 0);
}

TestSuite(arrival, .init = begin, .timeout = 60);

static struct gid ipv4(uint32_t address)
{
	struct gid g = { .octet = { [10] = 0xff, [11] = 0xff } };

	store_be32(g.octet + 12, address);
	return g;
}

/* One entry of the table, the one of this hash, leads to queue 3, the others to queue 0. */
static void set_table(uint32_t special)
{
	struct rte_eth_rss_reta_entry64 group[2];
	struct rte_eth_dev_info info;

	cr_assert_eq(rte_eth_dev_info_get(id, &info), 0);
	cr_assert_eq(info.reta_size, 128);
	for (uint32_t i = 0; i < 128; i++) {
		group[i / 64].mask = UINT64_MAX;
		group[i / 64].reta[i % 64] = i == special % 128 ? 3 : 0;
	}
	cr_assert_eq(rte_eth_dev_rss_reta_update(id, group, 128), 0);
}

/* The test has its own hash, computed bit by bit; DPDK's uses words. */
static uint32_t toeplitz(const uint8_t *input, uint32_t octets)
{
	uint32_t hash = 0;

	for (uint32_t bit = 0; bit < 8 * octets; bit++) {
		uint32_t window = 0;

		if ((input[bit / 8] >> (7 - bit % 8) & 1) == 0)
			continue;
		for (uint32_t k = bit; k < bit + 32; k++)
			window = window << 1 | (key[k / 8] >> (7 - k % 8) & 1);
		hash ^= window;
	}
	return hash;
}

/* The test's own hash is right: 66.9.149.187:2794 to 161.142.100.80:1766. */
Test(arrival, the_published_hash)
{
	static const uint8_t input[] = {
		66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6
	};

	cr_expect_eq(toeplitz(input, 12), 0x51ccc178);
	cr_expect_eq(toeplitz(input, 8), 0x323e8fc2);
}

static uint32_t hash_of(const struct gid *from, const struct gid *to, uint16_t port, bool ports)
{
	uint32_t each = gid_is_ipv4(from) ? 4 : 16;
	uint8_t input[36];

	memcpy(input, from->octet + 16 - each, each);
	memcpy(input + each, to->octet + 16 - each, each);
	store_be16(input + 2 * each, port);
	store_be16(input + 2 * each + 2, 4791);
	return toeplitz(input, 2 * each + (ports ? 4 : 0));
}

static void expect_arrivals(const struct gid *from, const struct gid *to, bool ports)
{
	for (uint32_t port = 0xc000; port < 0xc020; port++) {
		uint32_t hash = hash_of(from, to, (uint16_t)port, ports);
		struct arrival *a;

		set_table(hash);
		a = arrival_learn(id);
		cr_assert_not_null(a);
		cr_expect_eq(arrival_queue(a, from, to, (uint16_t)port), 3, "port %x", port);
		free(a);
		set_table(hash + 1);
		a = arrival_learn(id);
		cr_expect_eq(arrival_queue(a, from, to, (uint16_t)port), 0, "port %x", port);
		free(a);
	}
}

Test(arrival, it_follows_hash_and_table)
{
	struct gid from = ipv4(0x420995bb), to = ipv4(0xa18e6450);
	struct gid from6 = { .octet = { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0, 0x1f, 0xff, [15] = 7 } };
	struct gid to6 = { .octet = { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0, 0, 3, [15] = 1 } };

	start(RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
	expect_arrivals(&from, &to, true);
	expect_arrivals(&from6, &to6, true);
}

Test(arrival, a_device_may_hash_addresses_alone)
{
	struct gid from = ipv4(0x420995bb), to = ipv4(0xa18e6450);

	start(RTE_ETH_RSS_IPV4);
	expect_arrivals(&from, &to, false);
}

Test(arrival, a_device_that_hashes_something_else_says_nothing)
{
	struct gid from = ipv4(0x420995bb), to = ipv4(0xa18e6450);
	struct arrival *a;

	start(RTE_ETH_RSS_NONFRAG_IPV6_UDP);
	a = arrival_learn(id);
	cr_assert_not_null(a);
	cr_expect_eq(arrival_queue(a, &from, &to, 0xc000), UINT16_MAX);
	free(a);
	also = RTE_ETH_RSS_L4_DST_ONLY;
	cr_expect_null(arrival_learn(id), "it hashes a part of it");
}
