/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of what an engine has, for people: queue pairs, regions, programs, neighbours, paths. The
 * rules of protocol/command.h apply, which includes this file. Everybody who may connect may ask.
 * Users get only what belongs to their own programs; root and the engine's user get everything.
 *
 * A list comes in parts. `from` is 0 in the first request, and then the last reply's `next`, until
 * that is 0. Objects that come and go meanwhile may be missed.
 */
#ifndef PROTOCOL_COMMAND_LIST_H
#define PROTOCOL_COMMAND_LIST_H

#include "protocol/command.h"

struct request_list {
	struct command_request h;
	uint64_t from;
};

/* Where the packets of a queue pair go, or those for a neighbour. */
enum listed_way {
	LISTED_NOWHERE, /* not connected, or the MAC address is being resolved */
	LISTED_PORT,
	LISTED_HERE, /* one of the engine's own addresses */
	LISTED_UNREACHABLE,
	LISTED_BY_REQUEST, /* UD: each request names its destination */
};

struct listed_qp {
	uint32_t qpn;
	uint32_t dest_qpn; /* 0: not connected */
	uint32_t send_psn; /* PSN of the next new packet that it sends */
	uint32_t receive_psn; /* PSN of the next request packet that it expects */
	uint32_t pid; /* as the engine sees it; 0: unknown or embedded */
	uint32_t uid;
	struct gid peer; /* all zero: none */
	uint8_t type; /* enum qp_type */
	uint8_t state; /* enum qp_state */
	uint8_t lcore;
	uint8_t way; /* enum listed_way */
	char program[32];
	uint32_t reserved;
	uint64_t sent, received; /* packets */
	uint64_t again; /* ... sent again */
};

#define LISTED_QPS 35u

struct reply_qp_list {
	struct command_reply h;
	uint64_t next;
	uint32_t count;
	uint32_t reserved;
	struct listed_qp qp[LISTED_QPS];
};

/* How the engine reaches a region. A set of bits. */
enum listed_reach {
	LISTED_MAPPED = 1, /* parts that the engine maps */
	LISTED_PEER = 2, /* ... and parts that it copies through the program's /proc/PID/mem */
	LISTED_ON_DEMAND = 4,
	LISTED_DEVICE = 8, /* device memory */
};

struct listed_mr {
	uint64_t address; /* the first octet's address in work requests */
	uint64_t length;
	uint32_t key; /* lkey and rkey */
	uint32_t access; /* enum access_flag */
	uint32_t pid;
	uint32_t uid;
	uint32_t reach; /* enum listed_reach */
	uint32_t reserved;
	char program[32];
};

#define LISTED_MRS 48u

struct reply_mr_list {
	struct command_reply h;
	uint64_t next;
	uint32_t count;
	uint32_t reserved;
	struct listed_mr mr[LISTED_MRS];
};

struct listed_program {
	uint64_t memory; /* octets of the engine's memory that its queue pairs use */
	uint32_t pid;
	uint32_t uid;
	uint32_t contexts, pds, mrs, cqs, qps, srqs, ahs, ids;
	char program[32];
};

#define LISTED_PROGRAMS 40u

struct reply_program_list {
	struct command_reply h;
	uint64_t next;
	uint32_t count;
	uint32_t reserved;
	struct listed_program program[LISTED_PROGRAMS];
};

/* An address behind the port that queue pairs or address handles send to. */
struct listed_neighbour {
	struct gid gid;
	struct gid from; /* the own address, if the way depends on it; otherwise all zero */
	uint8_t mac[6]; /* of the next hop, once known */
	uint8_t way; /* enum listed_way: PORT, NOWHERE (being resolved) or UNREACHABLE */
	uint8_t reserved;
	uint32_t users; /* queue pairs and address handles */
	uint32_t serial; /* an entry that is made later for the same address has another one */
	uint64_t looks; /* how often its MAC address was looked up, ... */
	uint64_t changes; /* ... with another answer than before */
};

#define LISTED_NEIGHBOURS 60u

/* Neighbours of all users. Only root and the engine's user get them; others get an empty list. */
struct reply_neighbour_list {
	struct command_reply h;
	uint64_t next;
	uint32_t count;
	uint32_t reserved;
	struct listed_neighbour neighbour[LISTED_NEIGHBOURS];
};

/* What an lcore knows about the path to a peer (transport/path.h). */
struct listed_path {
	struct gid peer;
	uint8_t lcore;
	uint8_t traffic_class;
	uint16_t reserved;
	uint32_t
		serial; /* on its lcore; a path that is made later to the same peer has another one */
	uint32_t qps;
	uint32_t parked; /* queue pairs that the window holds back */
	uint64_t round_trip_ns, variation_ns, least_ns; /* 0: not known */
	uint64_t target_ns; /* the longest round trip before the window shrinks; 0: not known */
	uint64_t window, flying; /* octets */
	uint64_t samples; /* measured round trips */
	uint64_t sent, again; /* packets, and how many of them were sent again */
	uint64_t acknowledged; /* octets */
	uint64_t overtaken, reported; /* losses, by how they were found */
	uint64_t probes, timeouts;
	uint64_t cnps_received, cnps_sent;
	uint64_t cuts, waits; /* how often the window shrank, and held a queue pair back */
};

#define LISTED_PATHS 22u

/* Paths of all users. Only root and the engine's user get them; others get an empty list. */
struct reply_path_list {
	struct command_reply h;
	uint64_t next;
	uint32_t count;
	uint32_t reserved;
	struct listed_path path[LISTED_PATHS];
};

static_assert(sizeof(struct reply_qp_list) <= LIMIT_COMMAND_BYTES &&
		      sizeof(struct reply_mr_list) <= LIMIT_COMMAND_BYTES &&
		      sizeof(struct reply_program_list) <= LIMIT_COMMAND_BYTES &&
		      sizeof(struct reply_neighbour_list) <= LIMIT_COMMAND_BYTES &&
		      sizeof(struct reply_path_list) <= LIMIT_COMMAND_BYTES,
	      "a part fits one message");

#endif
