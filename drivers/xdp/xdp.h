/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE on a Linux interface through AF_XDP. A program of ours in the interface's driver gives the
 * engine's frames to net_af_xdp, and leaves all others to the kernel (roce.bpf.c).
 *
 *	  frames -> driver -> roce.bpf.c -+-> net_af_xdp's sockets -> the engine
 *	                                  `-> the kernel
 *
 * net_af_xdp loads the program from a file, and leaves it on the interface if the process is
 * killed. Therefore the program is attached again through a descriptor (BPF_LINK_CREATE) once the
 * port is open. The kernel detaches it when the last process that has the descriptor ends, however
 * it ends.
 *
 * For the control thread. If uroce was built without clang or libbpf, xdp_usable() says so, and
 * nothing else is called.
 */
#ifndef DRIVERS_XDP_XDP_H
#define DRIVERS_XDP_XDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct port;
struct xdp;

/* Octets that the kernel keeps in front of each frame in a buffer (XDP_PACKET_HEADROOM). */
#define XDP_HEADROOM 256u

/* The largest Ethernet MTU, because a frame, all headrooms and DPDK's headers share a page. */
#define XDP_MTU 3502u

/*
 * Whether the interface's driver can run the program itself, and each queue of the interface has a
 * queue of the engine. The program is attached for a moment to find out. False: `why` says what is
 * missing.
 */
bool xdp_usable(const char *iface, uint32_t ifindex, uint16_t queues, char *why, size_t why_size);

/* The number of queues of the interface, at least 1. */
uint32_t xdp_queues(uint32_t ifindex);

/*
 * Returns a descriptor of a file with the program, for `xdp_prog=/proc/self/fd/N`. -1 and errno on
 * failure.
 */
int xdp_program_file(void);

/*
 * Takes over the program that an open net_af_xdp port has put on the interface. NULL: it failed,
 * see `why`, and the program stays where it is.
 */
struct xdp *xdp_take(uint32_t ifindex, char *why, size_t why_size);
/* From now on the port's addresses are the engine's, and no others. */
void xdp_set_addresses(struct xdp *x, const struct port *p);
/* Detaches the program. The caller closes the port afterwards. NULL is allowed. */
void xdp_release(struct xdp *x);

#endif
