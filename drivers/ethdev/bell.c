/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bell for ports without rx interrupts: a packet socket on the port's Linux interface that keeps
 * one octet of each frame. Its receive queue holds one or two frames. While the lcore is awake and
 * does not empty it, each further frame costs the kernel only the filter.
 *
 * The kernel gives a frame to the packet sockets of an interface one after the other, to the one that was bound last
 * first. So this socket has its octet before the port's own socket has the frame (port.rings_early).
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"

#define KEEP		     1 /* octets: 0 would mean "drop" */
#define LOAD(size, at)	     BPF_STMT(BPF_LD | (size) | BPF_ABS, at)
#define TEST(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(octets)	     BPF_STMT(BPF_RET | BPF_K, octets)
#define PACKET_TYPE	     ((uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE))

/* Accepts every received frame. */
static struct sock_filter any_frame[] = {
	LOAD(BPF_B, PACKET_TYPE),
	TEST(PACKET_OUTGOING, 0, 1),
	RETURN(0),
	RETURN(KEEP),
};

/*
 * Accepts received frames to UDP port 4791, over IPv4 (5 words) or IPv6. A VLAN tag is not part of
 * these octets.
 */
static struct sock_filter roce_frame[] = {
	LOAD(BPF_B, PACKET_TYPE),
	TEST(PACKET_OUTGOING, 11, 0),
	LOAD(BPF_H, 12),
	TEST(ETH_P_IP, 0, 4),
	LOAD(BPF_B, 23),
	TEST(IPPROTO_UDP, 0, 7),
	LOAD(BPF_H, 36),
	TEST(ROCE_UDP_PORT, 4, 5),
	TEST(ETH_P_IPV6, 0, 4),
	LOAD(BPF_B, 20),
	TEST(IPPROTO_UDP, 0, 2),
	LOAD(BPF_H, 56),
	TEST(ROCE_UDP_PORT, 1, 0),
	RETURN(0),
	RETURN(KEEP),
};

bool bell_filter(int fd, bool roce_only)
{
	struct sock_fprog filter = {
		.len = roce_only ? ARRAY_SIZE(roce_frame) : ARRAY_SIZE(any_frame),
		.filter = roce_only ? roce_frame : any_frame,
	};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

static bool bell_prepare(int fd, uint32_t ifindex, bool roce_only)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = (int)ifindex };
	int smallest = 1; /* the kernel rounds it up to the size of one frame */

	return bell_filter(fd, roce_only) &&
	       setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest)) == 0 &&
	       bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

int bell_open(uint32_t ifindex, bool roce_only)
{
	/* Protocol 0, so that no frame arrives before the filter is attached. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bell_prepare(fd, ifindex, roce_only))
		return fd;
	close(fd);
	return -1;
}

void bell_silence(int fd)
{
	uint8_t octet;

	for (int i = 0; i < 64; i++)
		if (recv(fd, &octet, 1, MSG_DONTWAIT) < 0)
			return;
}
