/* SPDX-License-Identifier: BSD-3-Clause */
/* The forwarder's ports: one queue each. */
#ifndef PORTS_H
#define PORTS_H

#include <rte_ether.h>
#include <rte_mempool.h>

#define PORTS_MTU 1500

/* Starts all ports of EAL. Returns their buffers, or NULL on failure. */
struct rte_mempool *ports_open(void);
const struct rte_ether_addr *port_mac(uint16_t port);

#endif
