/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every bound of the project, in one place. What is announced to programs (device attributes) is
 * derived from these; what would break if one changed stands beside it as a static assertion.
 */
#ifndef UROCE_LIMITS_H
#define UROCE_LIMITS_H

#include <assert.h>
#include <stdint.h>

/*
 * Device attributes (ibv_query_device(3)): what one program may have. Of objects that the engine counts
 * it has room for more, see below.
 */
#define LIMIT_QPS	   65536u /* queue pairs */
#define LIMIT_QP_WR	   16384u /* send or receive requests of one queue pair */
#define LIMIT_SGE	   32u /* scatter/gather elements of one request */
#define LIMIT_INLINE	   512u /* octets of inline data of one request */
#define LIMIT_CQS	   65536u
#define LIMIT_CQE	   1048575u /* entries of one CQ: a ring of 2^20 less the one rte_ring keeps free */
#define LIMIT_MODERATION   65535u /* completions, and microseconds, that an event may wait */
#define LIMIT_MRS	   262144u /* regions and windows */
#define LIMIT_PDS	   65536u
#define LIMIT_AHS	   65536u /* address handles */
#define LIMIT_MCAST_GROUPS 1024u /* multicast groups with members of one program */
#define LIMIT_MCAST_QPS	   64u /* queue pairs of one engine attached to one group */
#define LIMIT_SRQS	   32767u /* shared receive queues */
#define LIMIT_TAGS	   1024u /* entries of the list of one tag matching SRQ */
#define LIMIT_TAG_OPS	   127u /* operations on it that wait to be executed */
#define LIMIT_TAG_SGE	   4u /* elements of one entry */
#define LIMIT_RNDV_HEADER  64u /* octets of a rendezvous request that is answered by the engine */
#define LIMIT_RD_ATOMIC	   128u /* outstanding READs and atomics, either side of a queue pair */
#define LIMIT_GIDS	   16u
#define LIMIT_PKEYS	   1u /* RoCE: 0xFFFF only */
#define LIMIT_COMP_VECTORS 64u
#define LIMIT_FLOWS	   1024u /* steering rules */
#define LIMIT_COUNTERS	   1024u /* counter objects */
#define LIMIT_RWQ_TABLES   1024u /* indirection tables, and queue pairs on them */
#define LIMIT_RWQ_TABLE	   256u /* entries of one */
#define LIMIT_TSO	   65024u /* octets of payload that one TSO request may segment */
#define LIMIT_TSO_HEADER   256u /* octets of headers in front of each segment */
#define LIMIT_CLIENTS	   1024u /* processes attached to one engine */
#define LIMIT_MESSAGE	   (1u << 31) /* octets of one message, IBTA 9.7.3 */
#define LIMIT_RATE	   100000000u /* kbit/s that a queue pair can be limited to */
#define LIMIT_MR_LENGTH	   (UINT64_C(1) << 47)
#define LIMIT_DM_BYTES	   (UINT64_C(64) << 20) /* device memory of one program */

/* The engine. */
#define LIMIT_LCORES	   16u /* four bits of a queue pair number name its lcore */
#define LIMIT_BURST	   32u /* packets of one rx or tx burst */
#define LIMIT_TURN	   16u /* packets one queue pair may send before the next has its turn */
#define LIMIT_SPANS	   100u /* spans of one packet: 32 elements, each cut by page-granular pieces */
#define LIMIT_FLOW_COPIES  64u /* steering rules that see one frame */
#define LIMIT_TSO_SEGMENTS 128u /* of one request */
#define LIMIT_RENDEZVOUS   16u /* of one queue pair under way */
#define LIMIT_TICKETS	   64u /* unsettled copies of one queue pair */
#define LIMIT_TICKETS_NEW  8u /* ... that a new one has room for: most settle each at once */
#define LIMIT_COPY_WAIT	   10000u /* ms that a command waits for copies; then its program is ended */

/* The transport. */
#define LIMIT_WINDOW	   256u /* packets a requester keeps unacknowledged at most */
#define LIMIT_WINDOW_START 64u /* ... and at the start */
#define LIMIT_WINDOW_FLOOR 32u /* ... and after any number of losses */
#define LIMIT_ACK_EVERY	   16u /* a long message asks for an acknowledgement this often, packets */

/* All programs together: one that has all that it may leaves as much to others. */
#define LIMIT_ENGINE_QPS	(4 * LIMIT_QPS)
#define LIMIT_ENGINE_CQS	(4 * LIMIT_CQS)
#define LIMIT_ENGINE_MRS	(2 * LIMIT_MRS) /* keys are made for them at the start */
#define LIMIT_ENGINE_AHS	(4 * LIMIT_AHS)
#define LIMIT_ENGINE_SRQS	65535u /* 16 bits of their numbers */
#define LIMIT_ENGINE_GROUPS	(4 * LIMIT_MCAST_GROUPS)
#define LIMIT_ENGINE_DM_BYTES	(UINT64_C(1) << 30) /* device memory */
#define LIMIT_ENGINE_PDS	(4 * LIMIT_PDS)
#define LIMIT_ENGINE_FLOWS	(2 * LIMIT_FLOWS)
#define LIMIT_ENGINE_COUNTERS	(4 * LIMIT_COUNTERS)
#define LIMIT_ENGINE_RWQ_TABLES (4 * LIMIT_RWQ_TABLES)
#define LIMIT_ENGINE_CONTEXTS	(16 * LIMIT_CLIENT_CONTEXTS)
#define LIMIT_ENGINE_CM_IDS	(8 * LIMIT_CLIENT_CM_IDS)
#define LIMIT_ENGINE_CM_JOINS	(8 * LIMIT_CLIENT_CM_JOINS)

/* Of this process, and no user's: lib/control/share/user.c. */
#define LIMIT_OWN_DESCRIPTORS \
	(4 * LIMIT_COMMAND_FDS) /* those of a message on its way, files read now and then */
#define LIMIT_OWN_MAPPINGS 4096u /* what the allocator and threads come to have */
#define LIMIT_MALLOC_MAPS \
	131072u /* octets: from there on the allocator may make a mapping for them */

/* What one client may hold, so that others find something left. */
#define LIMIT_CLIENT_CONTEXTS	 1024u
#define LIMIT_CLIENT_XRCDS	 256u /* a descriptor of the engine each */
#define LIMIT_CLIENT_CHANNELS	 1024u
#define LIMIT_CLIENT_MEMORY	 (UINT64_C(4) << 30) /* octets of the engine's for its queue pairs */
#define LIMIT_CLIENT_DMS	 256u /* a descriptor and a mapping of the engine each */
#define LIMIT_CLIENT_CM_CHANNELS 16384u /* a descriptor of the engine each */
#define LIMIT_CLIENT_CM_IDS	 32768u
#define LIMIT_CLIENT_CM_JOINS	 4096u
#define LIMIT_CLIENT_CM_EVENTS	 65536u /* that commands of it caused, and it has not asked for */
#define LIMIT_SRQ_RINGS		 16u /* resizes of one SRQ whose requests nobody has taken yet */
#define LIMIT_USER_PORTERS	 4u /* of a user: processes that take his descriptors; that drop them */
#define LIMIT_PORTERS		 64u /* ... of all users */
#define LIMIT_USER_FILES	 64u /* ... that keep a file which names an XRC domain */
#define LIMIT_CONNECTIONS	 (2 * LIMIT_CLIENTS + 64u) /* sockets; uroce run has one, too */

/* What both sides of the control socket map. */
#define LIMIT_ARENA_BYTES   (UINT64_C(8) << 30) /* sparse: memory is used where it is touched */
#define LIMIT_COMMAND_BYTES 4096u /* one control message */
#define LIMIT_COMMAND_FDS   20u /* descriptors beside one control message */

#define LIMIT_CLIENT_DM_BYTES (2 * LIMIT_DM_BYTES) /* with what it imports */

static_assert(LIMIT_ENGINE_DM_BYTES >= 2 * LIMIT_DM_BYTES && LIMIT_ENGINE_SRQS >= 2 * LIMIT_SRQS,
	      "one program does not take it all");
static_assert(LIMIT_TAGS < 0xff00, "an entry is named by 16 bits");
static_assert((LIMIT_TICKETS & (LIMIT_TICKETS - 1)) == 0, "ticket records are masked");
static_assert((LIMIT_TICKETS_NEW & (LIMIT_TICKETS_NEW - 1)) == 0, "ticket records are masked");
static_assert(LIMIT_SPANS > 3 * LIMIT_SGE,
	      "every element may be cut by two page-granular edges, and a TSO header comes first");
static_assert(LIMIT_WINDOW_FLOOR >= 2 * LIMIT_ACK_EVERY,
	      "a lost acknowledgement is made good by the next");
static_assert(LIMIT_WINDOW < (1u << 23), "IBTA 9.7.2: never more than half the PSN space");

#endif
