/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of drivers/ethdev; private to them. */
#ifndef DRIVERS_ETHDEV_PRIVATE_H
#define DRIVERS_ETHDEV_PRIVATE_H

#include <stdatomic.h>

#include <rte_ethdev.h>
#include <rte_flow.h>

#include "drivers/ethdev/claim.h"
#include "drivers/ethdev/ethdev.h"

struct aside;
struct steering;
struct netdev;
struct netdev_options;

struct rings {
	uint16_t rx, tx; /* descriptors of each queue */
};

struct ethdev_queue {
	atomic_uint_fast64_t source_own; /* written by the queue's lcore, read by any thread */
	atomic_uint_fast64_t truncated;
	int bell; /* descriptor, or -1 */
	bool bell_is_interrupt;
	bool armed; /* the interrupt is on, until a frame arrives */
	uint16_t naps; /* since the last frame, taken instead of using the interrupt */
	bool bell_is_borrowed; /* it is net_af_xdp's own socket, which the driver closes */
} __rte_cache_aligned;

struct packet_rings {
	uint32_t count;
	int fd[LIMIT_LCORES];
};

struct ethdev {
	struct port port;
	uint16_t id;
	uint16_t behind; /* the port below net_impair, otherwise the same as id */
	uint16_t mtu; /* as opened: frames are never larger */
	uint32_t wanted; /* offloads that the user wants; port.offloads are those in use */
	struct rings rings; /* as requested */
	uint32_t link_ifindex; /* the Linux interface behind the port; 0: none */
	int facts; /* descriptor for queries about the interface; -1: none */
	struct packet_rings packet_rings; /* of net_af_packet; none for others */
	bool sees_own_frames;
	uint64_t own; /* atomic: the port's address, for lcores */
	bool filters_vlans; /* the device filters VLANs, and lets ours through */
	bool xdp; /* net_af_xdp, not behind net_impair */
	bool interrupts; /* configured for rx interrupts */
	/* ... which are counted in an eventfd; otherwise the frames are in the descriptor */
	bool interrupts_read;
	bool promiscuous; /* for one of the next three reasons */
	bool kernel_promiscuous; /* the kernel's interface is */
	bool hears_others; /* a program wants frames to other hosts */
	bool groups_need_it; /* it cannot receive all groups otherwise */
	bool filters_groups; /* it can be told which groups are wanted */
	bool has_one_table; /* ... in its table of MAC addresses */
	bool all_groups; /* all groups of the Linux interface come */
	/* descriptor for the filter of the Linux interface; -1: DPDK's driver has the filter */
	int filter;
	uint32_t told_groups; /* the groups that it was told */
	struct rte_ether_addr told[LIMIT_PORT_GROUPS];
	int removed; /* eventfd: readable once the device is removed; -1: not watched */
	const char *device; /* EAL's name of the device whose removal it reports; NULL: none */
	struct netdev *netdev; /* --netdev, or NULL */
	uint32_t claims; /* the interface, or memif end, that only one engine may have; 0: none */
	struct claim claim; /* ... which keeps others away */
	struct aside *aside; /* frames that the XDP program leaves to the kernel, or NULL */
	struct steering *steering; /* rules for queue pair numbers, or NULL */
	struct arrival *arrival; /* how the device spreads flows; NULL: unknown, or not needed */
	struct ethdev_queue queue[LIMIT_LCORES];
};

/*
 * steering.c: rules by which packets arrive at the queue that the low four bits of their queue pair
 * number name. NULL: the device does not support such rules, and none are set.
 */
struct steering_calls {
	int (*validate)(uint16_t id, const struct rte_flow_attr *attr,
			const struct rte_flow_item *pattern, const struct rte_flow_action *actions,
			struct rte_flow_error *error);
	struct rte_flow *(*create)(uint16_t id, const struct rte_flow_attr *attr,
				   const struct rte_flow_item *pattern,
				   const struct rte_flow_action *actions,
				   struct rte_flow_error *error);
	int (*destroy)(uint16_t id, struct rte_flow *flow, struct rte_flow_error *error);
};
extern const struct steering_calls steering_by_dpdk;
struct steering *steering_begin(uint16_t id, uint16_t queues, const struct steering_calls *calls);
void steering_end(struct steering *s); /* before the port is stopped; NULL is allowed */

/*
 * arrival.c: the queue to which the device's hash of addresses and ports leads, according to the
 * key and indirection table that it reports. NULL: it does not report them, or it hashes in another
 * way.
 */
struct arrival *arrival_learn(uint16_t id);
uint16_t arrival_queue(const struct arrival *a, const struct gid *from, const struct gid *to,
		       uint16_t source_port);

/* The largest MTU that the port's driver and arguments allow, and how the user can raise it. */
struct carries {
	uint32_t mtu;
	char raise[128]; /* "raise framesz=... of net_af_packet0" */
};

void ethdev_carries(uint16_t id, const struct rte_eth_dev_info *info,
		    const struct rte_mempool *pool, struct carries *c);

/*
 * net_impair has the properties of its lower port: replaces *id and *info by those of the lower
 * port.
 */
void ethdev_behind(uint16_t *id, struct rte_eth_dev_info *info);

/*
 * Whether its driver takes packet buffers of any memory of this process (takes_any.c). Others need the EAL's: a peer or a
 * card knows no other.
 */
bool ethdev_takes_any_buffer(const struct rte_eth_dev_info *info);

/* An argument of the device from --vdev or -a, in `size` octets; "": it was not given. */
void ethdev_devarg(const struct rte_eth_dev_info *info, const char *key, char *value, size_t size);

/* Whether it is a PCI device, as opposed to a software port. */
bool ethdev_is_card(const struct rte_eth_dev_info *info);

/*
 * A tap also gives its MAC address to the kernel's end. With the same address, the kernel would
 * talk to itself.
 */
bool ethdev_shares_mac(const struct rte_eth_dev_info *info);

/* The Linux interface behind the port; 0: none. */
uint32_t ethdev_ifindex(uint16_t id, const struct rte_eth_dev_info *info);
/*
 * claims.c: the same, even if the interface says nothing about the port's link (net_pcap); or
 * CLAIM_MEMIF.
 */
uint32_t ethdev_claims(uint16_t id, const struct rte_eth_dev_info *info);

/* Octets before the IP packet in a packet ring's frame: tpacket2 header, address, Ethernet. */
#define PACKET_RING_OVERHEAD 80u

/* A packet socket that becomes readable when frames arrive (roce_only: on UDP 4791). */
int bell_open(uint32_t ifindex, bool roce_only);
bool bell_filter(int fd, bool roce_only);
void bell_silence(int fd);

/*
 * own_sockets.c: descriptors of this process's sockets of a domain, AF_XDP or AF_PACKET. own_socket_new: the one that is open
 * now and was not open before; -1: none.
 */
#define OWN_SOCKETS 256u /* more than two for each queue of four ports */
struct own_sockets {
	uint32_t count;
	int fd[OWN_SOCKETS];
};
void own_sockets_find(int domain, struct own_sockets *all);
int own_socket_new(int domain, const struct own_sockets *before);

/*
 * packet_rings.c: net_af_packet's sockets on a Linux interface. packet_rings_send: sends what stayed in them after the
 * interface was down; for any thread, while lcores send.
 */
void packet_rings_find(struct packet_rings *rings, uint32_t ifindex);
void packet_rings_send(const struct packet_rings *rings, uint32_t ifindex);

/*
 * aside.c: a packet socket for frames that are not RoCE. It accepts none until steering rules want
 * such frames.
 */
struct aside *aside_open(uint32_t ifindex, struct rte_mempool *pool);
int aside_fd(const struct aside *a);
void aside_widen(struct aside *a, bool every_frame);
/* Drops frames that the socket still holds from the time when rules wanted them. */
void aside_silence(struct aside *a);
/*
 * Called by the lcore of queue 0. Adds to *truncated the number of frames that were longer than a
 * buffer.
 */
uint16_t aside_rx_burst(struct aside *a, uint16_t port, struct rte_mbuf **frames, uint16_t n,
			uint32_t *truncated);
void aside_close(struct aside *a); /* NULL is allowed */

/*
 * offloads.c. offloads_wanted: what OFFLOAD_AUTO means for this device; other values are returned
 * unchanged. offloads_rx, offloads_tx: the flags for which DPDK is asked, limited to what the
 * device announces. `wanted`: OFFLOAD_* without OFFLOAD_AUTO. offloads_granted: the OFFLOAD_* among
 * those flags. offloads_let_pass: makes the device stop dropping frames of this VLAN (0: untagged).
 * False: see `why`.
 */
uint32_t offloads_wanted(const struct rte_eth_dev_info *info, uint32_t wanted);
uint64_t offloads_rx(const struct rte_eth_dev_info *info, uint32_t wanted);
uint64_t offloads_tx(const struct rte_eth_dev_info *info, uint32_t wanted);
uint32_t offloads_granted(uint64_t rx, uint64_t tx);
bool offloads_let_pass(const struct ethdev *d, uint16_t vlan, char *why, size_t size);

/*
 * offloaded.c. offloaded_tx_burst: rte_eth_tx_burst() for a device that does d->port.offloads.
 * Frames that it does not take are restored. offloaded_received: puts tags back into frames from
 * which the device took them. Returns how many frames are left: a frame without room for its tag is
 * freed.
 */
uint16_t offloaded_tx_burst(const struct ethdev *d, uint16_t queue, struct rte_mbuf **frames,
			    uint16_t n);
uint16_t offloaded_received(struct rte_mbuf **frames, uint16_t n);

/*
 * rings.c: chooses the lengths of the rings, before rte_eth_dev_adjust_nb_rx_tx_desc() adjusts them
 * to the device. False: the device cannot have rings of length o->descriptors; see `why`.
 */
bool rings_choose(const struct ethdev_options *o, const struct rte_eth_dev_info *info,
		  uint16_t queues, struct rings *r, char *why, size_t size);

/*
 * filter.c: which frames come. At first all groups do, and then those that hear() of port_ops
 * wants.
 */
void filter_open(struct ethdev *d, const struct rte_eth_dev_info *info);
void filter_hear(struct ethdev *d, const struct port_hears *h);
void filter_promiscuous(struct ethdev *d, bool wanted); /* for the kernel's interface */
void filter_close(struct ethdev *d);

/*
 * interface_filter.c: the filter of a Linux interface (PACKET_MR_MULTICAST, _ALLMULTI, _PROMISC of
 * packet(7)). It lasts as long as the descriptor is open. address: for PACKET_MR_MULTICAST,
 * otherwise NULL. Add each only once.
 */
int interface_filter_open(void); /* -1: it cannot be opened */
bool interface_filter_add(int fd, uint32_t ifindex, unsigned short type,
			  const struct rte_ether_addr *address);
bool interface_filter_remove(int fd, uint32_t ifindex, unsigned short type,
			     const struct rte_ether_addr *address);

/* removal.c */
void removal_watch(struct ethdev *d, const struct rte_eth_dev_info *info);
void removal_forget(struct ethdev *d);
bool removal_told(const struct ethdev *d);

/* kernel.c: creates the interface of --kernel-interface. False: see `why`. */
bool kernel_join(struct ethdev *d, const char *name, char *why, size_t why_size);
/*
 * Synchronises interface and port. On entry, *up and *mtu are the port's; on return, they are what
 * programs see. True: addresses or the MAC address changed.
 */
bool kernel_follow(struct ethdev *d, bool *up, uint16_t *mtu);

/*
 * pool.c: the octets of data that mbufs need, a pool of them, and whether a pool is such a pool, in
 * which buffer follows buffer.
 */
uint32_t xdp_buffer_octets(uint16_t mtu);
struct rte_mempool *pool_for_xdp(const char *name, uint32_t n, uint32_t queues, uint32_t cache,
				 uint16_t room, int socket);
bool pool_is_dense(const struct rte_mempool *pool);

/* netdev_device.c: the device of --netdev. Its driver is chosen already. */
uint16_t netdev_mtu(const struct netdev_options *o); /* 0: no such interface */
bool netdev_fits(const struct netdev_options *o, char *why, size_t why_size);
/* Returns 0 or a negative error number. program: xdp_program_file() for net_af_xdp. */
int netdev_make_device(const struct netdev_options *o, int program, char *name, size_t size);

/* ethdev.c: the functions of a started port that does these offloads (0: none). */
const struct port_ops *ethdev_ops_for(uint32_t offloads);

/* netdev.c */
bool netdev_refresh(struct netdev *n, struct port *p);
void netdev_close(struct netdev *n);

#endif
