/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of --netdev or --port, its packet buffers, and whether its devices are free. */
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/ethdev/ethdev.h"
#include "drivers/ethdev/netdev.h"
#include "drivers/kernel_interface/kernel_interface.h"
#include "engine/address.h"
#include "engine/port.h"
#include "apps/nodes.h"
#include "uroced_log.h"
#include "uroced_port.h"

#define MTU_DEFAULT 4200u

#define MIB_OF_EAL 64u /* what it needs beside packet buffers, and more */

/* -m cannot make hugepages, and without -m EAL takes as many as are free. `private`: nor does -m give the buffers memory. */
static void say_no_pool(uint32_t n, uint32_t octets, bool private)
{
	uint32_t mib = (uint32_t)(((uint64_t)n * (octets + 256)) >> 20);

	if (rte_eal_has_hugepages())
		SAY(ERR,
		    "no memory for %u packet buffers of %u octets: have %u MiB of hugepages free (echo %u "
		    "> /proc/sys/vm/nr_hugepages), or --no-huge",
		    n, octets, mib + MIB_OF_EAL, (mib + MIB_OF_EAL) / 2 + 64);
	else if (private)
		SAY(ERR,
		    "no memory for %u packet buffers of %u octets: they need %u MiB beside EAL's own memory (-m %u)",
		    n, octets, mib, MIB_OF_EAL);
	else
		SAY(ERR, "no memory for %u packet buffers of %u octets: give EAL at least -m %u", n,
		    octets, mib + MIB_OF_EAL);
}

/* netdev: what --netdev asks for; NULL: --port. */
static struct rte_mempool *make_pool(const struct uroced_options *o,
				     const struct netdev_options *netdev, uint32_t lcores)
{
	uint16_t mtu = o->engine.mtu != 0 ? o->engine.mtu : MTU_DEFAULT;
	uint32_t octets = ethdev_buffer_octets(o->port, mtu);
	uint32_t n = LIMIT_POOL_BASE + LIMIT_POOL_LCORE * lcores;
	struct rte_mempool *pool;

	octets = netdev != NULL ? netdev_mbuf_octets(netdev) : octets;
	octets = (uint32_t)round_up(RTE_PKTMBUF_HEADROOM + octets, 64);
	pool = netdev != NULL
		       ? netdev_pool(netdev, "uroced", n, LIMIT_POOL_CACHE)
		       : ethdev_pool(o->port, "uroced", n, LIMIT_POOL_CACHE, (uint16_t)octets);
	if (pool == NULL)
		say_no_pool(n, octets, netdev != NULL || ethdev_pool_is_private(o->port));
	return pool;
}

static void list_ports(char *text, size_t size)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	size_t n = 0;
	uint16_t id;

	text[0] = '\0';
	RTE_ETH_FOREACH_DEV(id)
	if (rte_eth_dev_get_name_by_port(id, name) == 0 && n < size)
		n += (size_t)snprintf(text + n, size - n, "%s%s", n > 0 ? ", " : "", name);
}

/*
 * The kernel owns the addresses, including those of --ip. The engine follows what the interface
 * has, now and later.
 */
static int give_addresses(struct uroced_options *o)
{
	struct port *p = port_of_program(o->engine.port);

	for (uint32_t i = 0; i < o->engine.addresses; i++) {
		const struct uroce_address *a = &o->engine.address[i];
		struct gid gid;
		int error;

		memcpy(gid.octet, a->octet, sizeof(gid.octet));
		error = kernel_interface_add_address(p->kernel, &gid, a->prefix);
		if (error == 0)
			continue;
		say_option(o, "--ip: cannot give an address to --kernel-interface %s: %s",
			   o->kernel_interface, strerror(error));
		p->ops->close(p);
		return 1;
	}
	o->engine.addresses = 0;
	p->ops->refresh(p);
	return 0;
}

/* The kernel answers only for the interface's addresses. They may be added later. */
static void say_foreign_addresses(const struct uroced_options *o)
{
	const struct port *p = port_of_program(o->engine.port);
	char text[INET6_ADDRSTRLEN];

	for (uint32_t i = 0; i < o->engine.addresses; i++) {
		const struct gid gid = address_gid(&o->engine.address[i]);
		uint32_t k = 0;

		while (k < p->addresses && !gid_equal(&p->address[k].gid, &gid))
			k++;
		if (k == p->addresses)
			say_option(
				o,
				"--ip %s: %s does not have this address, so no peer finds it there (ip address add "
				"... dev %s)",
				address_text(&o->engine.address[i], text, sizeof(text)), o->netdev,
				o->netdev);
	}
}

/* NULL: `why` says why, unless that has been said. */
static struct port *open_by(struct uroced_options *o, struct netdev_options *n, uint32_t lcores,
			    char *why, size_t why_size)
{
	struct port *p = NULL;

	why[0] = '\0';
	if (!netdev_check(n, why, why_size))
		return NULL;
	n->pool = make_pool(o, n, lcores);
	if (n->pool != NULL)
		p = netdev_open(n, why, why_size);
	if (p == NULL)
		rte_mempool_free(n->pool);
	return p;
}

/* The driver that was asked for or, if the choice is ours, af_xdp where it works, and a line says which. */
static struct port *open_some(struct uroced_options *o, struct netdev_options *n, uint32_t lcores,
			      char *why, size_t why_size)
{
	bool chosen = n->driver != NETDEV_AUTO;
	char reason[512] = "";
	struct port *p;

	netdev_choose(n, reason, sizeof(reason));
	p = open_by(o, n, lcores, why, why_size);
	if (p == NULL && !chosen && n->driver == NETDEV_AF_XDP) {
		snprintf(reason, sizeof(reason), "%s", why);
		n->driver = NETDEV_AF_PACKET;
		p = open_by(o, n, lcores, why, why_size);
	}
	if (p != NULL && !chosen && n->driver == NETDEV_AF_XDP)
		SAY(NOTICE, "%s: --netdev-driver af_xdp", n->iface);
	else if (p != NULL && !chosen)
		SAY(NOTICE, "%s: --netdev-driver af_packet, because not af_xdp: %s", n->iface,
		    reason);
	return p;
}

static int open_netdev(struct uroced_options *o, uint32_t lcores)
{
	struct netdev_options n = { .iface = o->netdev,
				    .driver = (enum netdev_driver)o->netdev_driver,
				    .queues = (uint16_t)lcores,
				    .mtu = o->engine.mtu,
				    .vlan = o->engine.vlan,
				    .socket = SOCKET_ID_ANY };
	struct port *p;
	char why[512];

	if (if_nametoindex(o->netdev) == 0) {
		say_option(o, "--netdev %s: must be an interface of this machine (see ip link)",
			   o->netdev);
		return 1;
	}
	p = open_some(o, &n, lcores, why, sizeof(why));
	if (p == NULL && why[0] != '\0')
		SAY(ERR, "%s", why);
	if (p == NULL)
		return 1;
	o->engine.pool = n.pool;
	o->engine.port = port_for_program(p);
	o->netdev_used = n.driver;
	say_foreign_addresses(o);
	return 0;
}

/* A user who asks for offloads is told which of them the port does; without --offload, only if it does any. */
static void say_offloads(const struct uroced_options *o)
{
	uint32_t done = port_of_program(o->engine.port)->offloads;
	char text[OFFLOAD_TEXT];

	offload_describe(o->offloads, done, text);
	if (text[0] != '\0' && (done != 0 || o->offloads != OFFLOAD_AUTO))
		SAY(NOTICE, "%s: offload %s", o->port, text);
}

static int open_named_port(struct uroced_options *o, uint32_t lcores)
{
	struct ethdev_options e = { .name = o->port,
				    .queues = (uint16_t)lcores,
				    .mtu = o->engine.mtu,
				    .descriptors = o->descriptors,
				    .offloads = o->offloads,
				    .socket = SOCKET_ID_ANY };
	char why[512], names[128];
	uint16_t id;

	if (rte_eth_dev_get_port_by_name(o->port, &id) != 0) {
		list_ports(names, sizeof(names));
		if (ethdev_why_missing(o->port, why, sizeof(why))) {
			say_option(o, "--port %s", why);
			return 1; /* which may be mended without another command line */
		}
		say_option(
			o,
			"--port %s: must be a port of EAL (it has: %s); add it with -a or --vdev "
			"before `--`",
			o->port, names[0] != '\0' ? names : "none");
		return OPTIONS_USAGE;
	}
	o->engine.pool = make_pool(o, NULL, lcores);
	if (o->engine.pool == NULL)
		return 1;
	e.pool = o->engine.pool;
	if (o->kernel_interface[0] != '\0')
		e.kernel_interface = o->kernel_interface;
	o->engine.port = port_for_program(ethdev_open(&e, why, sizeof(why)));
	if (o->engine.port == NULL)
		SAY(ERR, "%s", why);
	if (o->engine.port == NULL)
		return 1;
	say_offloads(o);
	return o->kernel_interface[0] != '\0' ? give_addresses(o) : 0;
}

bool uroced_port_is_missing(const struct uroced_options *o)
{
	char why[512];
	uint16_t id;

	return o->port[0] != '\0' && rte_eth_dev_get_port_by_name(o->port, &id) != 0 &&
	       ethdev_why_missing(o->port, why, sizeof(why));
}

/* Frames that an lcore reads on a node other than the card's cross the link between both. */
static void look_at_nodes(const struct uroced_options *o)
{
	const struct port *p = port_of_program(o->engine.port);
	int cpu[UROCE_LCORES];
	char text[256];

	for (uint32_t i = 0; i < o->engine.lcores; i++)
		cpu[i] = rte_lcore_to_cpu_id((int)o->engine.lcore_ids[i]);
	if (nodes_differ(cpu, o->engine.lcores, p->node, o->netdev[0] != '\0' ? o->netdev : o->port,
			 text, sizeof(text)))
		SAY(WARNING, "%s", text);
}

/* `status`: of opening the port. */
static int looked_at(const struct uroced_options *o, int status)
{
	if (status == 0)
		look_at_nodes(o);
	return status;
}

int uroced_open_port(struct uroced_options *o, uint32_t lcores)
{
	char names[128];

	if (o->port[0] != '\0')
		return looked_at(o, open_named_port(o, lcores));
	list_ports(names, sizeof(names));
	if (names[0] != '\0') {
		SAY(ERR, "EAL has a port (%s) that is not used: name it with --port%s or remove it",
		    names, o->netdev[0] != '\0' ? " instead of --netdev" : "");
		return OPTIONS_USAGE;
	}
	return o->netdev[0] != '\0' ? looked_at(o, open_netdev(o, lcores)) : 0;
}

struct free_for {
	uint16_t vlan;
	char *why;
	size_t why_size;
};

static int device_is_taken(void *free_for, const char *device)
{
	const struct free_for *f = free_for;

	return !ethdev_device_is_free(device, f->vlan, f->why, f->why_size);
}

int uroced_check_devices(const struct eal_arguments *eal, const struct uroced_options *o, char *why,
			 size_t why_size)
{
	struct free_for f = { o->engine.vlan, why, why_size };

	return eal_options_vdevs(eal, device_is_taken, &f);
}
