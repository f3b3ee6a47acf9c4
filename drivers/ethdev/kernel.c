/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port on which the kernel has an interface, too. As with --netdev, the kernel owns the
 * addresses, and answers ARP, neighbour discovery and echo instead of the engine.
 *
 *	link down, MTU lowered behind the port	->	carrier and MTU of the interface
 *	interface set down, MTU lowered		->	the port is down, or carries less, for programs
 *	its MAC address, promiscuity		->	the device's, if the device can
 *	its addresses				->	the engine's GIDs
 */
#include <stdio.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"
#include "drivers/interface.h"
#include "drivers/kernel_interface/kernel_interface.h"
#include "drivers/log.h"

bool kernel_join(struct ethdev *d, const char *name, char *why, size_t why_size)
{
	struct port *p = &d->port;

	p->kernel = kernel_interface_open(name, &p->mac, p->mtu, why, why_size);
	if (p->kernel == NULL)
		return false;
	/*
	 * Neighbours on this host may leave checksums to hardware, which a Linux interface does not
	 * have.
	 */
	if (d->link_ifindex != 0)
		kernel_interface_fill_checksums(p->kernel);
	p->kernel_answers = true;
	p->ifindex = kernel_interface_index(p->kernel);
	snprintf(p->netdev, sizeof(p->netdev), "%s", name);
	interface_addresses(p->ifindex, p);
	return true;
}

static bool same_mac(const struct mac *a, const struct mac *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/*
 * Sets the interface's MAC address on the device. If that fails, gives the interface its old one
 * back.
 */
static bool follow_mac(struct ethdev *d, const struct mac *wanted)
{
	struct rte_ether_addr mac;

	if (same_mac(&d->port.mac, wanted))
		return false;
	memcpy(mac.addr_bytes, wanted->octet, sizeof(mac.addr_bytes));
	if (rte_eth_dev_default_mac_addr_set(d->id, &mac) == 0) {
		d->port.mac = *wanted;
		return true;
	}
	LOG(WARNING, "%s cannot change its MAC address, so %s keeps the old one, too", d->port.name,
	    d->port.netdev);
	kernel_interface_set_mac(d->port.kernel, &d->port.mac);
	return false;
}

bool kernel_follow(struct ethdev *d, bool *up, uint16_t *mtu)
{
	struct kernel_interface *k = d->port.kernel;
	struct kernel_interface_state s;
	bool changed;

	kernel_interface_set_carrier(k, *up);
	changed = kernel_interface_refresh(k, &d->port, *mtu, &s);
	if (s.up) {
		changed |= follow_mac(d, &s.mac);
		filter_promiscuous(d, s.promiscuous);
	}
	*up = *up && s.up;
	*mtu = s.mtu != 0 ? MIN_OF(s.mtu, *mtu) : *mtu;
	return changed;
}
