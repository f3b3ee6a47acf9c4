/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The far end of a connection through the port: a process with a queue pair of the engine at
 * $UROCE_PEER_SOCKET, which reports what has happened to that queue pair.
 */
#ifndef TESTS_VERBS_FAR_PEER_H
#define TESTS_VERBS_FAR_PEER_H

#include "rig/endpoint.h"

#define FAR_MESSAGE 64u
#define FAR_KEPT    0x5au /* all octets of its buffer, but where a message was received */

struct far_peer {
	union ibv_gid gid;
	uint32_t qpn;
	uint64_t address;
	uint32_t rkey;
};

struct far_news {
	uint32_t state; /* enum ibv_qp_state */
	uint32_t completions; /* that it found, and ... */
	uint32_t failed;
	uint32_t changed; /* octets of its buffer */
	uint64_t address_mismatch, sender_foreign, peer_taken; /* counted by its engine */
};

/* Forks it, before this process has verbs objects. */
void far_peer_begin(struct far_peer *p);
void far_peer_end(void);
/* Connects it to that queue pair of ours; it has posted a receive request then. */
void far_peer_connect(const union ibv_gid *gid, uint32_t qpn);
struct far_news far_peer_look(void);
/* Waits for one message, whose octets must all have this value, and posts the next request. */
void far_peer_receives(uint8_t value);

#endif
