/* SPDX-License-Identifier: BSD-3-Clause */
#include "ports.h"

#include <stdio.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#define BUFFERS	    8191
#define DESCRIPTORS 512

static struct rte_ether_addr mac[RTE_MAX_ETHPORTS];

const struct rte_ether_addr *port_mac(uint16_t port)
{
	return &mac[port];
}

static int open_port(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = { 0 };
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	unsigned int socket = rte_socket_id();
	int error = rte_eth_dev_configure(port, 1, 1, &conf);

	if (error == 0)
		error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
	if (error == 0)
		error = rte_eth_rx_queue_setup(port, 0, rx, socket, NULL, pool);
	if (error == 0)
		error = rte_eth_tx_queue_setup(port, 0, tx, socket, NULL);
	if (error == 0)
		error = rte_eth_dev_start(port);
	if (error == 0)
		error = rte_eth_macaddr_get(port, &mac[port]);
	if (error == 0)
		rte_eth_promiscuous_enable(port);
	return error;
}

struct rte_mempool *ports_open(void)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"frames", BUFFERS, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, (int)rte_socket_id());
	uint16_t port;

	if (pool == NULL) {
		fprintf(stderr, "no memory for frames: give EAL more with -m\n");
		return NULL;
	}
	RTE_ETH_FOREACH_DEV(port)
	if (open_port(port, pool) != 0) {
		fprintf(stderr, "port %u does not start\n", port);
		return NULL;
	}
	return pool;
}
