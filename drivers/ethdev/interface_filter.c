/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's drivers that share a Linux interface with the kernel have no list of groups. They set the
 * interface's flags, which stay set when the process is killed. Memberships of a packet socket end
 * with the socket, and the kernel combines those of all programs.
 */
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>

#include "drivers/ethdev/private.h"

int interface_filter_open(void)
{
	/* Protocol 0, so that no frame arrives here. */
	return socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool change(int fd, int option, uint32_t ifindex, unsigned short type,
		   const struct rte_ether_addr *address)
{
	struct packet_mreq m = { .mr_ifindex = (int)ifindex, .mr_type = type };

	if (address != NULL) {
		m.mr_alen = sizeof(address->addr_bytes);
		memcpy(m.mr_address, address->addr_bytes, sizeof(address->addr_bytes));
	}
	return setsockopt(fd, SOL_PACKET, option, &m, sizeof(m)) == 0;
}

bool interface_filter_add(int fd, uint32_t ifindex, unsigned short type,
			  const struct rte_ether_addr *address)
{
	return change(fd, PACKET_ADD_MEMBERSHIP, ifindex, type, address);
}

bool interface_filter_remove(int fd, uint32_t ifindex, unsigned short type,
			     const struct rte_ether_addr *address)
{
	return change(fd, PACKET_DROP_MEMBERSHIP, ifindex, type, address);
}
