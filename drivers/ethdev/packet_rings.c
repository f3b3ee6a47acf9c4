/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that stay in a ring of net_af_packet. The driver writes a burst into the ring and makes one
 * call, which sends everything in the ring. That call fails once after the interface was down
 * (ENETDOWN), although the interface is up again, and the driver counts the burst as sent:
 *
 *	interface	up ---- down ---- up
 *	the socket		error		  fails	  sends both
 *	the driver			  burst 1   |  burst 2   |
 *					  |<-- stays in the ring
 *
 * If nothing else is sent, burst 1 stays for ever. It may be the request for a neighbour's address.
 * So the error is taken away and the call is made here, too.
 * The kernel lets one thread at a time send from a ring.
 */
#include <linux/if_packet.h>
#include <sys/socket.h>

#include "drivers/ethdev/private.h"

/* The engine's own packet sockets have no ring. They have the default version. */
static bool is_ring(int fd, uint32_t ifindex)
{
	struct sockaddr_ll at = { 0 };
	socklen_t at_size = sizeof(at), size = sizeof(int);
	int version = TPACKET_V1;

	return getsockname(fd, (struct sockaddr *)&at, &at_size) == 0 &&
	       at.sll_family == AF_PACKET && at.sll_ifindex == (int)ifindex &&
	       getsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, &size) == 0 &&
	       version == TPACKET_V2;
}

void packet_rings_find(struct packet_rings *rings, uint32_t ifindex)
{
	struct own_sockets all;

	own_sockets_find(AF_PACKET, &all);
	rings->count = 0;
	for (uint32_t i = 0; i < all.count && rings->count < LIMIT_LCORES; i++)
		if (is_ring(all.fd[i], ifindex))
			rings->fd[rings->count++] = all.fd[i];
}

void packet_rings_send(const struct packet_rings *rings, uint32_t ifindex)
{
	for (uint32_t i = 0; i < rings->count; i++) {
		socklen_t size = sizeof(int);
		int error;

		/* The driver closes them when its device goes. Then another file may have the number. */
		if (is_ring(rings->fd[i], ifindex) &&
		    getsockopt(rings->fd[i], SOL_SOCKET, SO_ERROR, &error, &size) == 0)
			sendto(rings->fd[i], NULL, 0, MSG_DONTWAIT, NULL, 0);
	}
}
