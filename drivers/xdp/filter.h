/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine and the program in the kernel (roce.bpf.c) both see: the addresses whose RoCE frames
 * are the engine's. The engine writes, the program reads, without a lock. While an address changes, a
 * frame to it may go either way, as it may while the interface itself gets the address.
 */
#ifndef DRIVERS_XDP_FILTER_H
#define DRIVERS_XDP_FILTER_H

#define XDP_QUEUES    64 /* of an interface; uroce has LIMIT_LCORES of them at most */
#define XDP_ADDRESSES 16 /* LIMIT_GIDS */

struct xdp_filter {
	unsigned int addresses; /* those of the first rows that count */
	unsigned int reserved;
	/* as two words each, in network order; an IPv4 address is mapped to IPv6 (::ffff:a.b.c.d) */
	unsigned long long address[XDP_ADDRESSES][2];
};

#endif
