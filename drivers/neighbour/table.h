/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of drivers/neighbour share; nobody else includes it. */
#ifndef DRIVERS_NEIGHBOUR_TABLE_H
#define DRIVERS_NEIGHBOUR_TABLE_H

#include "drivers/neighbour/neighbour.h"

#define ETHERTYPE_IPV4_ 0x0800u
#define ETHERTYPE_ARP_	0x0806u
#define ETHERTYPE_VLAN_ 0x8100u
#define ETHERTYPE_IPV6_ 0x86ddu

/*
 * FREE -> INCOMPLETE (asked by multicast) -> REACHABLE -> PROBING (asked by unicast; the old answer
 * still serves) -> REACHABLE or INCOMPLETE. INCOMPLETE without answer -> FAILED -> FREE.
 */
enum entry_state {
	ENTRY_FREE,
	ENTRY_INCOMPLETE,
	ENTRY_REACHABLE,
	ENTRY_PROBING,
	ENTRY_FAILED,
};

struct entry {
	struct gid gid;
	struct mac mac; /* of REACHABLE and PROBING */
	uint8_t state;
	uint8_t tries; /* questions sent in this state */
	nanotime due_at; /* when tick looks at it next */
	nanotime used_at; /* when it was last asked for */
	nanotime confirmed_at;
	nanotime changed_at; /* from one MAC address to another; 0: never */
	struct mac next_mac; /* the one that came too soon after that, */
	bool has_next; /* and is believed when the time is over */
};

/* A multicast group that we told the link of, or are about to. */
struct membership {
	struct gid group;
	bool used;
	uint8_t unasked; /* reports to be sent unasked */
	nanotime unasked_at;
	nanotime answer_at; /* to a query; TIME_NEVER: none is owed */
};

enum membership_report {
	REPORT_JOIN,
	REPORT_ANSWER,
	REPORT_LEAVE
};

/* A querier's question, IGMP or MLD. */
struct query {
	bool ipv4;
	bool general; /* about all groups, not `group` */
	bool older; /* it knows no source lists: IGMPv2, MLDv1 */
	struct gid group;
	nanotime patience; /* how long it waits for answers */
};

struct neighbour_kernel;

struct neighbour_table {
	struct mac mac;
	uint16_t vlan;
	uint32_t addresses;
	uint32_t gateways;
	uint32_t generation;
	struct neighbour_address address[LIMIT_GIDS];
	struct gid gateway[LIMIT_NEIGHBOUR_GATEWAYS];
	struct entry entry[LIMIT_NEIGHBOUR_ENTRIES];
	struct neighbour_kernel *kernel; /* or NULL */
	uint32_t memberships;
	nanotime igmp_v2_until; /* an older querier is about */
	nanotime mld_v1_until;
	uint64_t random;
	struct membership membership[LIMIT_ENGINE_GROUPS];
};

/* A frame whose Ethernet header was read. */
struct received {
	struct mac dst, src;
	const uint8_t *l3;
	uint32_t l3_length; /* octets from l3 to the frame's end, padding included */
	nanotime now;
};

extern const struct mac mac_broadcast;

bool mac_is_multicast(const struct mac *m);
bool mac_is_zero(const struct mac *m);
bool mac_equal(const struct mac *a, const struct mac *b);
struct gid gid_of_ipv4(const void *octets);
bool gid_is_link_local(const struct gid *g);
bool gid_is_unspecified(const struct gid *g);

/* The address of ours that talks to target, or NULL. */
const struct gid *neighbour_source(const struct neighbour_table *t, const struct gid *target);
bool neighbour_is_own(const struct neighbour_table *t, const struct gid *gid);

/* gid was seen to live at mac. Only entries that we asked for are ever written: nobody can fill the
 * table from outside. override false: a differing address is not believed (RFC 4861 7.2.5). */
void neighbour_learned(struct neighbour_table *t, const struct gid *gid, const struct mac *mac,
		       bool override, nanotime now);

/* A frame with its Ethernet header written and l3_length zeroed octets behind it; NULL: full. */
uint8_t *frame_begin(const struct neighbour_table *t, struct neighbour_frames *out,
		     const struct mac *dst, uint16_t ethertype, uint32_t l3_length);

/* The Internet checksum (RFC 1071); 0 of octets that hold their right checksum. */
uint16_t checksum_of(const void *octets, uint32_t length);

void arp_input(struct neighbour_table *t, const struct received *r, struct neighbour_frames *out);
bool arp_ask(struct neighbour_table *t, const struct entry *e, struct neighbour_frames *out);
void arp_announce(struct neighbour_table *t, const struct gid *own, struct neighbour_frames *out);
bool icmp_input(struct neighbour_table *t, const struct received *r, struct neighbour_frames *out);
bool icmp6_input(struct neighbour_table *t, const struct received *r, struct neighbour_frames *out);
bool nd_ask(struct neighbour_table *t, const struct entry *e, struct neighbour_frames *out);
void nd_announce(struct neighbour_table *t, const struct gid *own, struct neighbour_frames *out);

/* The checksum over the pseudo header (RFC 8200 8.1) and the message; 0 of a right message. */
uint16_t icmp6_checksum(const uint8_t *ip, const uint8_t *message, uint32_t length);

/* False: the list is full. `v2`, `v1`: as an older querier understands it. */
bool igmp_report(const struct neighbour_table *t, const struct gid *group,
		 enum membership_report what, bool v2, struct neighbour_frames *out);
bool igmp_input(struct neighbour_table *t, const struct received *r);
bool mld_report(const struct neighbour_table *t, const struct gid *group,
		enum membership_report what, bool v1, struct neighbour_frames *out);
bool mld_input(struct neighbour_table *t, const struct received *r);
void groups_queried(struct neighbour_table *t, const struct query *q, nanotime now);
nanotime groups_tick(struct neighbour_table *t, nanotime now, struct neighbour_frames *out);

int neighbour_kernel_join(struct neighbour_kernel *k, const struct gid *group);
void neighbour_kernel_leave(struct neighbour_kernel *k, const struct gid *group);
struct neighbour_kernel *neighbour_kernel_new(uint32_t ifindex);
void neighbour_kernel_free(struct neighbour_kernel *k);
/* Whether an answer may be another than the last time: the kernel has announced something. */
bool neighbour_kernel_changed(struct neighbour_kernel *k, nanotime now);
int neighbour_kernel_resolve(struct neighbour_kernel *k, const struct gid *gid, nanotime now,
			     struct mac *mac);

#endif
