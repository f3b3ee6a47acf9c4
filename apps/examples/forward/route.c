/* SPDX-License-Identifier: BSD-3-Clause */
#include "route.h"

#include <arpa/inet.h>
#include <stdio.h>

#include <rte_lcore.h>
#include <rte_lpm.h>

#define ROUTES 64u

static struct route routes[ROUTES];
static uint32_t count;
static struct rte_lpm *lpm;

static bool make_lpm(void)
{
	struct rte_lpm_config config = { .max_rules = ROUTES, .number_tbl8s = 64 };

	if (lpm == NULL)
		lpm = rte_lpm_create("routes", (int)rte_socket_id(), &config);
	return lpm != NULL;
}

bool route_add(const char *text)
{
	char address[16], mac[18], rest;
	unsigned int depth, port;
	struct in_addr in;

	if (count == ROUTES || !make_lpm() ||
	    sscanf(text, "%15[0-9.]/%u,%u,%17[0-9a-fA-F:]%c", address, &depth, &port, mac, &rest) !=
		    4 ||
	    inet_pton(AF_INET, address, &in) != 1 || depth > 32 || port >= RTE_MAX_ETHPORTS ||
	    rte_ether_unformat_addr(mac, &routes[count].next_hop) != 0)
		return false;
	routes[count].port = (uint16_t)port;
	if (rte_lpm_add(lpm, ntohl(in.s_addr), (uint8_t)depth, count) != 0)
		return false;
	count++;
	return true;
}

const struct route *route_find(uint32_t address)
{
	uint32_t i;

	return lpm != NULL && rte_lpm_lookup(lpm, address, &i) == 0 ? &routes[i] : NULL;
}
