/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine and the program in the kernel (roce.bpf.c) share: the addresses whose RoCE frames
 * are the engine's. The engine writes them and the program reads them, without a lock. While an
 * address changes, frames to it may go either way. They also may while the interface itself gets
 * the address.
 */
#ifndef DRIVERS_XDP_FILTER_H
#define DRIVERS_XDP_FILTER_H

#define XDP_QUEUES    64 /* of an interface; uroce uses at most LIMIT_LCORES of them */
#define XDP_ADDRESSES 17 /* LIMIT_GIDS */

struct xdp_filter {
	unsigned int addresses; /* how many of the rows below are valid, from the first on */
	unsigned int reserved;
	/*
	 * Each is two words in network order. An IPv4 address is mapped to IPv6 (::ffff:a.b.c.d).
	 */
	unsigned long long address[XDP_ADDRESSES][2];
};

#endif
