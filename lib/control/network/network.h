/* SPDX-License-Identifier: BSD-3-Clause */
/* Own addresses, the next hop to other addresses, groups, and the port's MTU and rate. */
#ifndef CONTROL_NETWORK_H
#define CONTROL_NETWORK_H

#include "lcore/lcore.h"

/* ---- own addresses ---- */

/*
 * Fills the table from the options, the port, or the host. Returns the number of changed entries.
 */
uint32_t gid_table_update(struct engine *e);
bool gid_is_own(const struct engine *e, const struct gid *g);
/* "10.1.0.2" or "fe80::1". */
const char *gid_text(const struct gid *g, char *text, size_t size);

/* ---- where packets go ---- */

int neighbour_agent_open(struct engine *e, char *why, size_t why_size);
void neighbour_agent_close(struct engine *e);
/* Own addresses, or at the start the port, are new: announces the addresses on the link. */
void neighbour_agent_announce(struct engine *e);
/* Handles frames that are not RoCE; tick handles timers. Control thread. */
void neighbour_agent_frames(struct engine *e, nanotime now);
nanotime neighbour_agent_tick(struct engine *e, nanotime now);
/* The link should deliver a group's frames, or no longer. 0 or an errno. */
int neighbour_agent_join(struct engine *e, const struct gid *group);
void neighbour_agent_leave(struct engine *e, const struct gid *group);
/* The joined groups, one after the other: *at is 0 at first. NULL: there are no more. */
const struct gid *neighbour_agent_group(const struct engine *e, uint32_t *at);
/*
 * heard.c: tells the port which multicast addresses are wanted now. Called after each change of the
 * addresses, groups or rules behind that list.
 */
void heard_update(struct engine *e);
/* A number that changes when a MAC address becomes known, changes or is given up. */
uint32_t neighbour_agent_news(const struct engine *e);
/* As neighbour_source_towards(), for any *source. Without a port the address is not known. */
int neighbour_agent_source(struct engine *e, const struct gid *dgid, struct gid *source);
/* Decides the flow state of a path between these addresses. FLOW_PORT fills in *mac. */
enum flow_state flow_resolve(struct engine *e, const struct gid *sgid, const struct gid *dgid,
			     struct mac *mac);
/*
 * The flow of a queue pair. Packets of reliable connections say that marks are understood (ECT), unless
 * the program has chosen these bits of the traffic class.
 */
void flow_make_of(const struct engine *e, const struct engine_qp *q, const struct qp_path *path,
		  uint32_t dest_qpn, const struct mac *mac, struct flow *flow);
/* The flow of a path between these queue pairs. */
void flow_make(const struct engine *e, const struct qp_path *path, uint32_t local_qpn,
	       uint32_t dest_qpn, const struct mac *mac, struct flow *flow);

/* ---- multicast groups ---- */

/*
 * groups.c: a queue pair joins or leaves a group. Joining again is not an error. 0 or an errno:
 * EINVAL (not a member), ENOMEM (too many groups or members), EUSERS (too many groups of the user),
 * or the kernel's.
 */
int mcast_attach(struct engine *e, const struct gid *gid, struct engine_qp *q);
int mcast_detach(struct engine *e, const struct gid *gid, struct engine_qp *q);
/*
 * The queue pair leaves all groups. Puts those that are empty before `unlinked`, to be freed later.
 */
struct mcast_group *mcast_forget(struct engine *e, struct engine_qp *q,
				 struct mcast_group *unlinked);
/* Called after a grace period. */
void mcast_free(struct engine *e, struct mcast_group *unlinked);

/* ---- the port ---- */

/* Octets of a RoCEv2 packet without its payload, as Linux's rxe counts them. */
#define HEADERS_MOST 80u
/* Takes the Ethernet MTU over. e->active_mtu is 0 if no packet fits. */
void engine_take_mtu(struct engine *e, uint32_t ethernet);
/* Follows the port's MTU. True: programs see another MTU. */
bool engine_follow_mtu(struct engine *e);
/*
 * link_rate.c: ibv_port_attr's active_speed and active_width for a link of that many Mbit/s; 0:
 * unknown, and then the values of the slowest link, as on Linux.
 */
#define MEMORY_RATE 40000u /* ... for a device without a port: the speed of memory, Mbit/s */
void link_rate(uint32_t mbits, uint8_t *speed, uint8_t *width);

#endif
