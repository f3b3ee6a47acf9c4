/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With --netdev, net_af_xdp receives only the engine's RoCE frames (drivers/xdp). Steering rules
 * may want other frames, which the kernel keeps. An additional packet socket gets a copy of those,
 * as net_af_packet gets a copy of every frame. Without such rules its filter accepts no frames, and
 * it is not read. With them a poll costs one more system call. `wide` is relaxed: the control
 * thread changes the filter, and an lcore may notice that a poll later.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/ethdev/private.h"

#define ALL 0x40000 /* octets: more than any frame has */

struct aside {
	int fd;
	bool wide; /* written by the control thread, read by the lcore */
	struct rte_mempool *pool;
};

static struct sock_filter nothing[] = { BPF_STMT(BPF_RET | BPF_K, 0) };

static struct sock_filter received[] = {
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 0),
	BPF_STMT(BPF_RET | BPF_K, ALL),
};

static bool set_filter(int fd, bool every_frame)
{
	struct sock_fprog filter = {
		.len = every_frame ? ARRAY_SIZE(received) : ARRAY_SIZE(nothing),
		.filter = every_frame ? received : nothing,
	};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

static bool prepare(int fd, uint32_t ifindex)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = (int)ifindex };
	int one = 1, room = (int)LIMIT_NETDEV_RING;

	/*
	 * Asks for as many octets as net_af_packet's ring holds. Without CAP_NET_ADMIN, gets as
	 * many as the system grants. A burst of 270 small frames fills the default size.
	 */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return set_filter(fd, false) &&
	       setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) == 0 &&
	       bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

struct aside *aside_open(uint32_t ifindex, struct rte_mempool *pool)
{
	struct aside *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->pool = pool;
	a->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd >= 0 && prepare(a->fd, ifindex))
		return a;
	if (a->fd >= 0)
		close(a->fd);
	free(a);
	return NULL;
}

int aside_fd(const struct aside *a)
{
	return a->fd;
}

void aside_silence(struct aside *a)
{
	if (!__atomic_load_n(&a->wide, __ATOMIC_RELAXED))
		bell_silence(a->fd);
}

void aside_widen(struct aside *a, bool every_frame)
{
	set_filter(a->fd, every_frame);
	__atomic_store_n(&a->wide, every_frame, __ATOMIC_RELAXED);
}

/* What the kernel says of the frame. NULL: nothing. */
static const struct tpacket_auxdata *said_of(struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
			return (const void *)CMSG_DATA(c);
	return NULL;
}

/* Puts the tag back that the kernel has taken out of the frame. False: there is no room. */
static bool put_tag_back(struct rte_mbuf *m, struct msghdr *h)
{
	const struct tpacket_auxdata *said = said_of(h);

	if (said == NULL || (said->tp_status & TP_STATUS_VLAN_VALID) == 0)
		return true;
	m->vlan_tci = said->tp_vlan_tci;
	if (rte_vlan_insert(&m) != 0)
		return false;
	if ((said->tp_status & TP_STATUS_VLAN_TPID_VALID) != 0)
		store_be16(rte_pktmbuf_mtod_offset(m, uint8_t *, 2 * RTE_ETHER_ADDR_LEN),
			   said->tp_vlan_tpid);
	return true;
}

/*
 * Returns the frame's octets; 0: there is no frame; negative: it was longer than a buffer and is
 * lost.
 */
static int read_frame(struct aside *a, struct rte_mbuf *m)
{
	union {
		struct cmsghdr align;
		uint8_t octets[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	struct iovec into = { rte_pktmbuf_mtod(m, void *), rte_pktmbuf_tailroom(m) };
	struct msghdr h = { .msg_iov = &into,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(a->fd, &h, MSG_DONTWAIT);

	if (n <= 0)
		return 0;
	if ((h.msg_flags & MSG_TRUNC) != 0)
		return -1;
	m->data_len = (uint16_t)n;
	m->pkt_len = (uint32_t)n;
	return put_tag_back(m, &h) ? (int)n : -1;
}

uint16_t aside_rx_burst(struct aside *a, uint16_t port, struct rte_mbuf **frames, uint16_t n,
			uint32_t *truncated)
{
	uint16_t got = 0;

	if (!__atomic_load_n(&a->wide, __ATOMIC_RELAXED))
		return 0;
	while (got < n) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(a->pool);
		int octets = m != NULL ? read_frame(a, m) : 0;

		if (octets > 0) {
			m->port = port;
			frames[got++] = m;
			continue;
		}
		rte_pktmbuf_free(m);
		if (octets == 0)
			break;
		(*truncated)++;
	}
	return got;
}

void aside_close(struct aside *a)
{
	if (a == NULL)
		return;
	close(a->fd);
	free(a);
}
