/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of drivers/neighbour; private to them. */
#ifndef DRIVERS_NEIGHBOUR_TABLE_H
#define DRIVERS_NEIGHBOUR_TABLE_H

#include "drivers/neighbour/neighbour.h"

#define ETHERTYPE_IPV4_ 0x0800u
#define ETHERTYPE_ARP_	0x0806u
#define ETHERTYPE_VLAN_ 0x8100u
#define ETHERTYPE_IPV6_ 0x86ddu

/*
 * FREE -> INCOMPLETE (asks by multicast) -> REACHABLE -> PROBING (asks by unicast; the old answer
 * is still used) -> REACHABLE or INCOMPLETE. INCOMPLETE without an answer -> FAILED -> FREE.
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
	struct mac mac; /* valid in REACHABLE and PROBING */
	uint8_t state;
	uint8_t tries; /* requests sent in this state */
	nanotime due_at; /* when the tick must look at it */
	nanotime used_at; /* when a flow last asked for it */
	nanotime confirmed_at; /* 0: never */
	nanotime changed_at; /* last change of the MAC address; 0: never */
	struct mac next_mac; /* a change that came too soon after the last one */
	bool has_next; /* next_mac is accepted when the time is over */
	bool is_offered; /* it will be dropped unless a flow asks for it */
};

/* A multicast group that was or will be reported to the link. */
struct membership {
	struct gid group;
	bool used;
	uint8_t unasked; /* unsolicited reports still to be sent */
	nanotime unasked_at;
	nanotime answer_at; /* when to answer a query; TIME_NEVER: no answer is due */
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
	bool older; /* it has no source lists: IGMPv2, MLDv1 */
	struct gid group;
	nanotime patience; /* how long the querier waits for answers */
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
	nanotime offered_at; /* when all entries were offered to flows last, to find unused ones */
	nanotime offer_age; /* how long flows could ask since, up to offer_seen_at */
	nanotime offer_seen_at;
	uint32_t reached; /* entries from here on were never used, so none of them is looked at */
	struct entry entry[LIMIT_NEIGHBOUR_ENTRIES];
	struct neighbour_kernel *kernel; /* or NULL */
	nanotime igmp_v2_until; /* an older querier is on the link until then */
	nanotime mld_v1_until;
	uint64_t random;
	uint32_t members_reached; /* memberships from here on were never used */
	struct membership membership[LIMIT_TOLD_GROUPS];
};

/* A frame whose Ethernet header has been read. */
struct received {
	struct mac dst, src;
	const uint8_t *l3;
	uint32_t l3_length; /* octets from l3 to the end of the frame, with padding */
	nanotime now;
};

extern const struct mac mac_broadcast;

bool mac_is_multicast(const struct mac *m);
bool mac_is_zero(const struct mac *m);
bool mac_equal(const struct mac *a, const struct mac *b);
struct gid gid_of_ipv4(const void *octets);
bool gid_is_unspecified(const struct gid *g);

/* Our address on target's subnet, or NULL. */
const struct gid *neighbour_source(const struct neighbour_table *t, const struct gid *target);
bool neighbour_is_own(const struct neighbour_table *t, const struct gid *gid);

/*
 * Notes that the address gid was seen at mac. Changes only entries that we asked for, so no host
 * can fill the table. override false: does not replace a different MAC address (RFC 4861 7.2.5).
 */
void neighbour_learned(struct neighbour_table *t, const struct gid *gid, const struct mac *mac,
		       bool override, nanotime now);

/*
 * Begins a frame: writes its Ethernet header and appends l3_length zero octets. NULL: the list is
 * full.
 */
uint8_t *frame_begin(const struct neighbour_table *t, struct neighbour_frames *out,
		     const struct mac *dst, uint16_t ethertype, uint32_t l3_length);

/* The Internet checksum (RFC 1071). It is 0 for octets that include their correct checksum. */
uint16_t checksum_of(const void *octets, uint32_t length);

void arp_input(struct neighbour_table *t, const struct received *r, struct neighbour_frames *out);
bool arp_ask(struct neighbour_table *t, const struct entry *e, struct neighbour_frames *out);
void arp_announce(struct neighbour_table *t, const struct gid *own, struct neighbour_frames *out);
bool icmp_input(struct neighbour_table *t, const struct received *r, struct neighbour_frames *out);
bool icmp6_input(struct neighbour_table *t, const struct received *r, struct neighbour_frames *out);
bool nd_ask(struct neighbour_table *t, const struct entry *e, struct neighbour_frames *out);
void nd_announce(struct neighbour_table *t, const struct gid *own, struct neighbour_frames *out);

/*
 * The checksum of pseudo header (RFC 8200 8.1) and message. It is 0 for a correct received message.
 */
uint16_t icmp6_checksum(const uint8_t *ip, const uint8_t *message, uint32_t length);

/*
 * Appends a report. `v2`, `v1`: in the form that an older querier understands. False: the list is
 * full.
 */
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
/* The kernel has announced something, so answers may have changed. */
bool neighbour_kernel_changed(struct neighbour_kernel *k, nanotime now);
int neighbour_kernel_source(struct neighbour_kernel *k, const struct gid *gid, struct gid *source);
int neighbour_kernel_resolve(struct neighbour_kernel *k, const struct gid *from,
			     const struct gid *gid, nanotime now, struct mac *mac);

#endif
