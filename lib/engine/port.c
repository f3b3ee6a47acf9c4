/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of DPDK and of Linux, as programs open them for an engine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/bits.h"
#include "drivers/ethdev/ethdev.h"
#include "drivers/ethdev/netdev.h"
#include "engine/inside.h"

/* NULL: the options are right. */
static const char *what_is_wrong(const struct uroce_port_options *o)
{
	if (rte_lcore_count() == 0)
		return "EAL is not initialised: call rte_eal_init() first";
	if ((o->name == NULL) == (o->netdev == NULL))
		return "a port needs either a name or a netdev";
	if (o->pool == NULL)
		return "a port needs a pool for the frames that it receives";
	if (o->queues > UROCE_LCORES)
		return "queues must be 0 .. 16";
	if (o->netdev != NULL && (o->descriptors != 0 || o->kernel_interface != NULL))
		return "descriptors and kernel_interface are not for a netdev";
	return NULL;
}

static struct port *open_netdev(const struct uroce_port_options *o, char *why, size_t why_size)
{
	/* not net_af_xdp, which serves untagged frames only: the VLAN is not known yet */
	struct netdev_options n = { .iface = o->netdev,
				    .driver = NETDEV_AF_PACKET,
				    .queues = o->queues,
				    .mtu = o->mtu,
				    .vlan = CLAIM_LATER, /* the port belongs to an engine */
				    .pool = o->pool,
				    .socket = SOCKET_ID_ANY };
	uint32_t octets = netdev_mbuf_octets(&n);
	uint32_t room = rte_pktmbuf_data_room_size(o->pool) - RTE_PKTMBUF_HEADROOM;

	if (octets > room) {
		snprintf(why, why_size,
			 "the buffers of the pool have room for %u octets, and %s needs %u", room,
			 o->netdev, octets);
		return NULL;
	}
	return netdev_open(&n, why, why_size);
}

static struct port *open_ethdev(const struct uroce_port_options *o, char *why, size_t why_size)
{
	struct ethdev_options e = { .name = o->name,
				    .queues = o->queues,
				    .mtu = o->mtu,
				    .descriptors = o->descriptors,
				    .offloads = OFFLOAD_AUTO,
				    .pool = o->pool,
				    .socket = SOCKET_ID_ANY,
				    .kernel_interface = o->kernel_interface };

	return ethdev_open(&e, why, why_size);
}

struct uroce_port *uroce_port_open(const struct uroce_port_options *options, char *why,
				   size_t why_size)
{
	struct uroce_port_options o;
	const char *wrong;
	struct port *p;

	errno = EINVAL;
	if (!struct_take(&o, sizeof(o), options, "uroce_port_options", why, why_size))
		return NULL;
	wrong = what_is_wrong(&o);
	if (wrong != NULL) {
		snprintf(why, why_size, "%s", wrong);
		return NULL;
	}
	o.queues = MAX_OF(o.queues, 1);
	errno = 0;
	p = o.netdev != NULL ? open_netdev(&o, why, why_size) : open_ethdev(&o, why, why_size);
	if (p == NULL && errno == 0)
		errno = ENODEV;
	return port_for_program(p);
}

int uroce_port_close(struct uroce_port *port)
{
	struct port *p = port_of_program(port);

	if (p == NULL)
		return EINVAL;
	if (p->taken)
		return EBUSY;
	p->ops->close(p);
	return 0;
}
