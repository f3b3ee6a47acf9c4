/* SPDX-License-Identifier: BSD-3-Clause */
/* Where IPv4 packets go: --route 10.2.0.0/24,PORT,MAC of the next hop. */
#ifndef ROUTE_H
#define ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>

struct route {
	uint16_t port;
	struct rte_ether_addr next_hop;
};

/* Adds the route in the text. False: it is not a route, or there are too many. */
bool route_add(const char *text);
/* The longest prefix that has this address (host order); NULL: none. */
const struct route *route_find(uint32_t address);

#endif
