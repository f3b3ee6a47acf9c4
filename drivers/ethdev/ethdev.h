/* SPDX-License-Identifier: BSD-3-Clause */
/* A struct port (drivers/port.h) made from an existing DPDK ethdev, given by -a, --vdev or code. */
#ifndef DRIVERS_ETHDEV_H
#define DRIVERS_ETHDEV_H

#include <stddef.h>

#include "base/reason.h"
#include "drivers/offload.h"
#include "drivers/port.h"

struct ethdev_options {
	const char *name; /* the port's name in DPDK: 0000:01:00.0, net_memif0, ... */
	uint16_t queues; /* how many are wanted; port->queues is how many there are */
	uint16_t mtu; /* Ethernet MTU; 0: the largest that port and pool carry */
	uint16_t descriptors; /* of each ring; 0: the driver's choice */
	uint32_t offloads; /* OFFLOAD_* that the device should do if it can */
	struct rte_mempool *pool; /* for received frames; a frame must fit one mbuf */
	int socket; /* NUMA node for the rings; SOCKET_ID_ANY: the port's */
	/* the kernel's network interface on this port; NULL: none */
	const char *kernel_interface;
};

/* Returns a started port; or NULL and, in `why`, one line that says what to change. */
struct port *ethdev_open(const struct ethdev_options *o, char *why, size_t why_size);

/*
 * Gives the port to an engine in this VLAN (0: untagged), before the engine uses it. False:
 * the port is on a Linux interface that another engine has in that VLAN, and `why` says which.
 */
bool ethdev_claim(struct port *p, uint16_t vlan, char *why, size_t why_size);

/*
 * Whether an engine in this VLAN may have such a device, which is given as in --vdev:
 * "NAME,KEY=VALUE,...". Call it before EAL makes the device, which may disturb the engine that has
 * the interface.
 */
bool ethdev_device_is_free(const char *device, uint16_t vlan, char *why, size_t why_size);

/*
 * Why EAL has no port of this name. If the name is the address of a PCI device, returns true and
 * puts one line into `why` that says what to do; otherwise false. The function with _at also takes
 * the folders of the devices and of vfio's groups.
 */
bool ethdev_why_missing(const char *name, char *why, size_t why_size);
bool ethdev_why_missing_at(const char *sysfs, const char *vfio, const char *name, char *why,
			   size_t why_size);

/*
 * Frames that rx_burst dropped: REASON_SOURCE_OWN (a packet socket also receives what this host
 * sends), REASON_RX_TRUNCATED (a chain of buffers that does not fit one). Any thread.
 */
uint64_t ethdev_dropped(const struct port *p, enum reason r);

/*
 * A descriptor that becomes, and stays, readable when the port's device is removed from the machine
 * or unbound from its driver. -1: ethdev_open did not make the port. The kernel waits until the
 * process has released the device, at the latest until the process ends. Until then the port has no
 * link.
 */
int ethdev_removed_fd(const struct port *p);

/* Octets of data (after the headroom) that an mbuf needs for frames of this MTU. */
static inline uint32_t ethdev_mbuf_octets(uint16_t mtu)
{
	return mtu + 14u + 4u;
}

/*
 * The same for this port, including the octets that its driver needs beside a frame: virtio needs a
 * header, and af_packet needs buffers as large as its ring's frames, whatever the MTU. Call it
 * before ethdev_open.
 */
uint32_t ethdev_buffer_octets(const char *name, uint16_t mtu);

/*
 * A pool for this port: n mbufs of `room` octets (with the headroom), and those that the driver
 * keeps. For net_af_xdp, it has the layout which that driver needs. NULL and rte_errno: there is no
 * memory for it.
 */
struct rte_mempool *ethdev_pool(const char *port, const char *name, uint32_t n, uint32_t cache,
				uint16_t room);

/* Whether ethdev_pool() takes memory that the EAL does not have: its option -m makes no difference to it. */
bool ethdev_pool_is_private(const char *port);

#endif
