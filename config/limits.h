/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bounds of the project. Device attributes that programs see are derived from these. Static
 * assertions at the end say what would break if one changed.
 *
 * A number belongs here if someone may want another one and the program would still be correct: a
 * time, a budget, a number of tries, the room of a table. Its comment has the unit. Elsewhere stay
 * numbers of a specification or of Linux, those of a layout in memory or of a message, hash buckets
 * (their chains hold any number), constants of an algorithm, beside the reason for their value, and
 * what is particular to one of the tools (apps/perf, apps/sim, apps/top, apps/examples).
 */
#ifndef UROCE_LIMITS_H
#define UROCE_LIMITS_H

#include <assert.h>
#include <stdint.h>

/* Device attributes (ibv_query_device(3)): limits of one program. See below for all. */
#define LIMIT_QPS	   65536u /* queue pairs */
#define LIMIT_QP_WR	   16384u /* send or receive requests of one queue pair */
#define LIMIT_SGE	   32u /* scatter/gather elements of one request */
#define LIMIT_INLINE	   512u /* octets of inline data of one request */
#define LIMIT_CQS	   65536u
#define LIMIT_CQE	   1048575u /* entries of one CQ: 2^20 less one that rte_ring keeps free */
#define LIMIT_MODERATION   65535u /* completions or microseconds that an event may wait for */
#define LIMIT_MRS	   262144u /* regions and windows */
#define LIMIT_PDS	   65536u
#define LIMIT_AHS	   65536u /* address handles */
#define LIMIT_MCAST_GROUPS 1024u /* multicast groups with members of one program */
#define LIMIT_PORT_GROUPS \
	128u /* multicast addresses that a card is told; more: it lets all through */
#define LIMIT_MCAST_QPS	   64u /* queue pairs of one engine attached to one group */
#define LIMIT_SRQS	   32767u /* shared receive queues */
#define LIMIT_TAGS	   1024u /* entries of the list of one tag matching SRQ */
#define LIMIT_TAG_OPS	   127u /* operations waiting on one tag list */
#define LIMIT_TAG_SGE	   4u /* elements of one entry */
#define LIMIT_RNDV_HEADER  64u /* octets of a rendezvous request that the engine answers */
#define LIMIT_RD_ATOMIC	   128u /* outstanding READs and atomics, either side of a queue pair */
#define LIMIT_ADDRESSES	   16u /* own addresses of an engine; more of an interface are left out */
#define LIMIT_GIDS	   (LIMIT_ADDRESSES + 1u) /* and the link-local address of the MAC address */
#define LIMIT_PKEYS	   1u /* RoCE: 0xFFFF only */
#define LIMIT_COMP_VECTORS 64u
#define LIMIT_FLOWS	   1024u /* steering rules */
#define LIMIT_COUNTERS	   1024u /* counter objects */
#define LIMIT_RWQ_TABLES   1024u /* indirection tables, and queue pairs on them */
#define LIMIT_RWQ_TABLE	   256u /* entries of one indirection table */
#define LIMIT_TSO	   65024u /* octets of payload that one TSO request may segment */
#define LIMIT_TSO_HEADER   256u /* octets of headers in front of each segment */
#define LIMIT_CLIENTS	   1024u /* processes attached to one engine */
#define LIMIT_MESSAGE	   (1u << 31) /* octets of one message, IBTA 9.7.3 */
#define LIMIT_RATE	   100000000u /* kbit/s that a queue pair can be limited to */
#define LIMIT_MR_LENGTH	   (UINT64_C(1) << 47)
#define LIMIT_DM_BYTES	   (UINT64_C(64) << 20) /* device memory of one program */

/* The engine. */
#define LIMIT_LCORES	    16u /* four bits of a queue pair number name its lcore */
#define LIMIT_BURST	    32u /* packets of one rx or tx burst */
#define LIMIT_TURN	    16u /* packets of a queue pair's turn; a turn that goes on is paid back */
#define LIMIT_SPANS	    100u /* spans of one packet: 32 elements, cut by page-granular pieces */
#define LIMIT_FLOW_COPIES   64u /* steering rules that see one frame */
#define LIMIT_TSO_SEGMENTS  128u /* of one request */
#define LIMIT_RENDEZVOUS    16u /* under way on one queue pair */
#define LIMIT_TICKETS	    64u /* unsettled copies of one queue pair */
#define LIMIT_TICKETS_NEW   4u /* ... at first: most queue pairs settle each copy at once */
#define LIMIT_WAIT_SHARE    10u /* a user may wait for lcores for 1 / N of the time */
#define LIMIT_WAIT_BURST_MS 100u /* ... and for this much at once */
#define LIMIT_PROMOTED_USES 65536u /* pieces of a program's regions in its promoted file */
#define LIMIT_COPY_WAIT	    10000u /* ms a command waits for copies; then its program is detached */

/* Lcores: how work is cut into pieces. */
#define LIMIT_STAGE	  256u /* frames of one tx round */
#define LIMIT_GATHER	  1024u /* copies from peer memory of one tx round */
#define LIMIT_BLANK_POLLS 64u /* without a packet, until buffers for more go back to the pool */
#define LIMIT_ROUND	  64u /* packets of all queue pairs in one poll, and the last turn */
#define LIMIT_WARY	  256u /* packets behind one that was sent again: each counts as two of a round */
#define LIMIT_LOOP_BACKLOG \
	512u /* frames for ourselves that are not read yet: then nothing is sent */
#define LIMIT_LOOP	     2048u /* room for them */
#define LIMIT_LOOP_BURST     128u /* of them that one poll reads: more than a tx round makes */
#define LIMIT_INBOX	     4096u /* frames from other lcores */
#define LIMIT_CROSSING	     1024u /* ... that wait for room there */
#define LIMIT_LCORE_MESSAGES 64u /* requests of the control path */
#define LIMIT_BATCH_COPIES   512u /* copies into peer memory of one rx round */
#define LIMIT_BATCH_TICKETS  128u /* packets that these belong to */
#define LIMIT_MODERATED	     32u /* CQs with a moderated event that one poll looks at */
#define LIMIT_DRAIN	     256u /* requests of one queue pair that are taken at once */
#define LIMIT_DRAINED	     1024u /* ... of all in one poll, and one queue pair's more */
#define LIMIT_QPS_NEAR	     64u /* queue pairs of an lcore that stay in its cache */
#define LIMIT_SEND_TRIES     4u /* at a port that takes nothing, before its frames wait */
#define LIMIT_STALL_US	     5u /* before a port or lcore that was full is tried again */
#define LIMIT_WAITING	     8192u /* frames that wait for the port, or for other lcores */
#define LIMIT_STUCK_MS	     1000u /* that they wait before they are dropped */
#define LIMIT_OPERATIONS     1024u /* binds of one lcore that wait for the control thread */
#define LIMIT_KERNEL_UP	     1024u /* frames that wait for the kernel */
#define LIMIT_KERNEL_DOWN    512u /* ... that come from it */

/* Copies of frames for `uroce capture`. */
#define LIMIT_CAPTURE_SNAP_MIN 64u /* octets that are kept of a frame */
#define LIMIT_CAPTURE_SNAP     65535u
#define LIMIT_CAPTURE_RING_MIN (1u << 17) /* octets of an lcore's ring: a frame fits */
#define LIMIT_CAPTURE_RING     (1u << 22) /* ... if nothing else is asked for */
#define LIMIT_CAPTURE_RING_MAX (1u << 28)
#define LIMIT_CAPTURE_LOOK_MS  5u /* between looks of the program that writes the file */
#define LIMIT_TRACE_PACKETS    16384u /* that are kept of each lcore: 2.5 MiB */
#define LIMIT_TRACE_SNAP       128u /* octets that are kept of each: all headers */

/* Lcores without work, which spin, then yield, then sleep. */
#define LIMIT_SPIN_US	      5u
#define LIMIT_YIELD_US	      200u /* since the last work, ... */
#define LIMIT_YIELD_LONGER_US 1000u /* ... where sleep costs more (lcore/idle/urgency.h) */
#define LIMIT_SLEEP_MS	      100u
#define LIMIT_LOOK_AGAIN_US   100u /* after a bell that may ring before its frame is there */
/* Where programs want their core, too (lib/lcore/idle/urgency.h). */
#define LIMIT_SLICE_US	      100u /* the shortest that Linux gives */
#define LIMIT_YIELD_LATE_US   250u /* longer than a program needs between two yields of its own */
#define LIMIT_YIELDS_LATE     2u /* in turn */
#define LIMIT_CROWD_MS	      100u /* before it tries to yield again */
#define LIMIT_QPN_REST_S      8u /* before the number of a queue pair is given again */

/* A call of the control thread that an lcore must answer (lcore_call). */
#define LIMIT_CALL_SPINS  100u /* looks before the core is offered to others, */
#define LIMIT_CALL_YIELDS 200u /* ... and before the caller sleeps between looks */
#define LIMIT_CALL_WAKES  64u /* looks between wake-ups; one is enough, more are harmless */

/* Movers: threads that copy where an lcore may not (lcore/moving). */
#define LIMIT_JOBS	   128u /* of one lcore under way */
#define LIMIT_JOBS_KEPT	   8u /* ... kept for users who have none */
#define LIMIT_JOB_COPIES   256u
#define LIMIT_JOB_TICKETS  64u /* packets that these belong to */
#define LIMIT_HELD	   6400u /* packets of one lcore that wait: of eight full windows */
#define LIMIT_HELD_KEPT	   128u /* ... kept for users who have few, */
#define LIMIT_HELD_FEW	   16u /* ... that is, at most this many */
#define LIMIT_HELD_AT_ONCE 128u /* packets of one poll that go on after a wait */

/* Packets behind gaps (lib/lcore/moving/behind.c). */
#define LIMIT_BEHIND	  8192u /* of one lcore: 20 ms of 10 Gbit/s, less than it has buffers */
#define LIMIT_BEHIND_KEPT 512u /* ... kept for users who have few, */
#define LIMIT_BEHIND_FEW  64u /* ... that is, at most this many */
#define LIMIT_BEHIND_FAR \
	(LIMIT_BEHIND / LIMIT_WINDOW) /* queue pairs that keep more than a window */
#define LIMIT_SHARE 4u /* times as many as are free, one user may have */

/* The control thread. */
#define LIMIT_BEAT_MS	    40u /* between heartbeats in the pages of programs */
#define LIMIT_REFRESH_MS    100u /* between looks at the port and the addresses */
#define LIMIT_ASYNC_REST    12u /* beats before an event that found a full socket is tried again */
#define LIMIT_SLICE_MS	    2u /* of the end of a program or context */
#define LIMIT_SLICE_REST_MS 2u /* others' turn behind it */
#define LIMIT_CLOSE_MS	    500u /* that an engine waits for copies at its end */
#define LIMIT_OWED_S	    20u /* that a reply waits for a program to read it: programs wait longer */
#define LIMIT_PORTER_WAIT_S \
	10u /* of a connection, while no porter of its user ends: it may get no core */
#define LIMIT_PORTER_QUEUE_S	 20u /* ... altogether, even if porters of its user make progress */
#define LIMIT_BIND_WAIT_S	 1u /* for copies, then a bind fails */
#define LIMIT_BINDS_AT_ONCE	 8u /* of one lcore, before others have their turn */
#define LIMIT_FLIP_MS		 100u /* between changes of a MAC address that are followed */
#define LIMIT_FLIP_QPS		 256u /* queue pairs that one message to an lcore changes */
#define LIMIT_FLIP_AHS		 256u /* address handles that are replaced together */
#define LIMIT_FLIP_LOOKS	 256u /* destinations that one slice looks at */
#define LIMIT_NEIGHBOUR_WAIT_MS	 5u /* between looks while an answer is awaited */
#define LIMIT_NEIGHBOUR_RETRY_MS 500u /* ... while a neighbour is unreachable */
#define LIMIT_STRANGERS_AT_ONCE	 256u /* frames that are not RoCE, before others have their turn */
#define LIMIT_STRANGERS		 1024u /* of them that wait */
#define LIMIT_CROWDED		 1024u /* queue pairs that wait for room for more unsettled copies */
#define LIMIT_CROWDED_AT_ONCE	 64u /* ... that one round serves */

/* The end of objects: what was posted before may leave. */
#define LIMIT_LEAVE_MS \
	10u /* that a command waits for it: the lcore's thread may be busy elsewhere */
#define LIMIT_LEAVE_LOOK_MS  1u /* between looks at what another thread has to send */
#define LIMIT_LEAVE_PAUSE_US 20u /* for the lcore's thread to take its seat */
#define LIMIT_SENDING_TURNS  1024u /* of lcores, for the requests with an address handle */
#define LIMIT_LAST_TURNS     128u /* of the lcore of a queue pair that is destroyed */
#define LIMIT_TURNS_AT_ONCE  16u /* of either under the control lock */

/* The connection manager. */
#define LIMIT_CM_REPORTS 64u /* events of one id that its program has not asked for */
#define LIMIT_CM_BACKLOG 1024u /* connection requests of one listener, likewise */
#define LIMIT_CM_SHOWN	 16u /* events of a channel in shared memory; the others are asked for */
#define LIMIT_CM_JOINS	 64u /* groups of one id */
#define LIMIT_CM_LINKS	 65536u /* connections of all programs, those at rest included */
#define LIMIT_CM_QUEUE	 65536u /* messages to ourselves that wait */
#define LIMIT_CM_MADS	 512u /* datagrams from lcores that wait: the rest of a flood is dropped */
#define LIMIT_CM_AT_ONCE 64u /* messages of one tick */
#define LIMIT_CM_STRAYS	 2000u /* answers a second to messages that belong to no connection */

/* Packet buffers. */
#define LIMIT_POOL_BASE 4096u /* of an engine, */
#define LIMIT_POOL_LCORE \
	12288u /* and more for each lcore, unless uroce_options.pool_size is set; */
#define LIMIT_POOL_WAITS      16384u /* of an lcore, for all that may wait; with fewer, less may */
#define LIMIT_POOL_HOST_BASE  2048u /* without a port, which needs no buffers for its rings, */
#define LIMIT_POOL_HOST_LCORE 6144u /* ... and loses nothing, so little waits behind gaps */

/* The engine: frames, and copies to and from memory of clients. */
#define LIMIT_LENT	  1024u /* octets of a packet that are worth a copy less within an lcore */
#define LIMIT_COPY_BREAKS 64u /* broken chains of copies that are remembered */
#define LIMIT_ATOMIC_WAIT 20u /* ms that a program's atomic on peer memory delays one of another */
#define LIMIT_ATOMIC_TRIES \
	200u /* for the lock of its words: about 10 us, as long as a copy takes */
#define LIMIT_ATOMIC_NAP_US   50u /* between tries of a mover, */
#define LIMIT_ATOMIC_AGAIN_MS 1u /* ... and of a sleeping lcore */
#define LIMIT_MOVER_BATCHES   2048u /* batches of copies under way in one mover */
#define LIMIT_PORTER_LIFE     5u /* s that a porter lasts, unless it is blocked against signals */
#define LIMIT_PORTER_TRIES \
	1000u /* of a report, 1 ms apart: Linux limits the descriptors in flight */
#define LIMIT_EXTENSION_HEADERS 8u /* IPv6 extension headers of a frame before it is refused */
#define LIMIT_RAW_EXTENSIONS	64u /* ... that a steering rule looks behind in a raw frame */

/* The transport. */
#define LIMIT_WINDOW	  256u /* unacknowledged packets of a requester, at most */
#define LIMIT_WINDOW_MOST 8192u /* ... on long ways to peers that acknowledge selectively, */
#define LIMIT_WINDOW_SLOT 16u /* ... for each request that its queue has room for, */
#define LIMIT_WINDOW_US	  4u /* ... and for each microsecond of the least round trip */
#define LIMIT_READ_PART \
	(128u << 10) /* octets of a READ that are asked for at once, if more may be */
#define LIMIT_SAMPLES	16u /* of the round trip under way, on long ways */
#define LIMIT_CNP_US	50u /* between congestion notifications of a queue pair */
#define LIMIT_ACK_EVERY 16u /* packets between acknowledgement requests in a long message */

/* Recovery of lost packets, see lib/transport/requester/{recovery,retry}.c. */
#define LIMIT_REORDER	    40u /* places by which the network may change the order of packets, */
#define LIMIT_REORDER_FIRST 4u /* ... and that it is thought to, until it was seen to do so */
#define LIMIT_REORDER_US    40u /* ... or times, if a quarter of a round trip is shorter */
#define LIMIT_REORDER_HELD  8u /* ... or this part of a round trip, if only held READs show it */
#define LIMIT_ROUNDS	    64u /* of repetitions without progress, which answers to later packets cause */
#define LIMIT_PATIENCE_US \
	2000u /* before a gap is reported by a NAK to a peer that closes it by itself */
#define LIMIT_PROBE_START_US  1000u /* silence before a probe while no round trip is known */
#define LIMIT_PROBE_MIN_US    40u /* ... and at least */
#define LIMIT_PROBES_ALONE    3u /* after N without an answer nothing is on its way */
#define LIMIT_PROBE_DOUBLINGS 12u /* of the wait for the next probe: the ACK timeout comes first */
#define LIMIT_SILENCE_MS      250u /* to which a retry prolongs a shorter ACK timeout */

/* Paths: the way to one peer, of one lcore. */
#define LIMIT_PATHS	    4096u /* of one lcore; queue pairs of further peers know no round trip */
#define LIMIT_PATH_USERS    16u /* that a path holds back by turns; further ones share their turns */
#define LIMIT_PATH_RTT_MS   1000u /* a longer round trip counts as this one */
#define LIMIT_PATH_START    (8u << 10) /* octets of a window at first */
#define LIMIT_PATH_WINDOW   (64u << 20) /* ... at most, */
#define LIMIT_PATH_FLOOR    (256u << 10) /* ... at least, if delay is all that speaks against it, */
#define LIMIT_PATH_HOSTS    (64u << 10) /* ... that, and a loss or mark lately, */
#define LIMIT_PATH_RING	    512u /* packets of a window at most while rings on the way are short */
#define LIMIT_PATH_MARKED   512u /* ... if marks are all that speaks against it, */
#define LIMIT_PATH_LEAST    64u /* ... and at least: a packet of 4 KiB in 64 round trips, */
/* packets of a window: at least, if losses without delay are all; at most, while a peer goes back often */
#define LIMIT_PATH_GO_BACK  32u
#define LIMIT_PATH_PAUSE_MS 10u /* ... but one in that time */
#define LIMIT_PATH_PACKET   4170u /* octets of the largest frame */
#define LIMIT_PATH_LONE	    8u /* losses in a row without delay are a bad cable's */
#define LIMIT_PATH_LOOKS    8u /* packets of a new path that go alone */
#define LIMIT_PATH_DELAY_US 4u /* that queues may add to a round trip */
#define LIMIT_PATH_STEP_US  100u /* a window grows by a packet in that time, or in a round trip */
#define LIMIT_PATH_STALL_MS \
	10u /* after a port took nothing: round trips may be longer by that time */
#define LIMIT_PATH_MIN_S 10u /* the least round trip is the least of this period and the last */

/* All programs together: a program at its limits leaves at least as much for others. */
#define LIMIT_ENGINE_QPS	(4 * LIMIT_QPS)
#define LIMIT_ENGINE_CQS	(4 * LIMIT_CQS)
#define LIMIT_ENGINE_MRS	(2 * LIMIT_MRS) /* their keys are made at start */
#define LIMIT_ENGINE_AHS	(4 * LIMIT_AHS)
#define LIMIT_ENGINE_SRQS	65535u /* 16 bits of their numbers */
#define LIMIT_ENGINE_GROUPS	(4 * LIMIT_MCAST_GROUPS)
#define LIMIT_TOLD_GROUPS	(LIMIT_ENGINE_GROUPS + LIMIT_GIDS) /* ... and those of own addresses */
#define LIMIT_ENGINE_WATCHES	8000u /* files left behind: Linux queues 16384 events, two of each */
#define LIMIT_ENGINE_DM_BYTES	(UINT64_C(1) << 30) /* device memory */
#define LIMIT_ENGINE_PDS	(4 * LIMIT_PDS)
#define LIMIT_ENGINE_FLOWS	(2 * LIMIT_FLOWS)
#define LIMIT_ENGINE_COUNTERS	(4 * LIMIT_COUNTERS)
#define LIMIT_ENGINE_RWQ_TABLES (4 * LIMIT_RWQ_TABLES)
#define LIMIT_ENGINE_CONTEXTS	(16 * LIMIT_CLIENT_CONTEXTS)
#define LIMIT_ENGINE_CM_IDS	(8 * LIMIT_CLIENT_CM_IDS)
#define LIMIT_ENGINE_CM_JOINS	(8 * LIMIT_CLIENT_CM_JOINS)

/* The engine's own needs, apart from its users: lib/control/share/user.c. */
#define LIMIT_OWN_DESCRIPTORS \
	(4 * LIMIT_COMMAND_FDS) /* of a message being handled, and of files read now and then */
#define LIMIT_OWN_MAPPINGS 4096u /* of the allocator and of threads */
#define LIMIT_MALLOC_MAPS  131072u /* octets from which on the allocator may make a mapping */

/* Limits of one client, so that some is left for others. */
#define LIMIT_CLIENT_CONTEXTS 1024u
#define LIMIT_CLIENT_XRCDS    256u /* each takes a descriptor of the engine */
#define LIMIT_CLIENT_CHANNELS 1024u
#define LIMIT_CLIENT_MEMORY \
	(UINT64_C(4) << 30) /* octets of the engine's memory for its queue pairs */
#define LIMIT_CLIENT_DMS	 256u /* each takes a descriptor and a mapping of the engine */
#define LIMIT_CLIENT_CM_CHANNELS 16384u /* each takes a descriptor of the engine */
#define LIMIT_CLIENT_CM_IDS	 32768u
#define LIMIT_CLIENT_CM_JOINS	 4096u
#define LIMIT_CLIENT_CM_EVENTS	 65536u /* caused by its commands and not fetched yet */
#define LIMIT_SRQ_RINGS		 16u /* old rings of one resized SRQ that still hold requests */
#define LIMIT_USER_PORTERS	 4u /* of one user: processes that receive, or close, descriptors */
#define LIMIT_PORTERS		 64u /* ... of all users */
#define LIMIT_USER_FILES	 64u /* ... that keep files which name XRC domains */
#define LIMIT_CONNECTIONS	 (2 * LIMIT_CLIENTS + 64u) /* sockets; uroce run has one, too */

/* The library, in one program. */
#define LIMIT_DEVICES		32u /* in a list of devices */
#define LIMIT_EMBEDDED_ENGINES	16u
#define LIMIT_HANDED		1024u /* frames that wait in each direction of a handed port's queue, */
#define LIMIT_HANDED_MOST	65536u /* ... and the most that a program may choose */
#define LIMIT_LEAVE_POLL	(1 * TIME_S) /* for calls in uroce_poll() when the engine ends */
#define LIMIT_QUERY_WAIT	3000u /* ms for the facts of a device */
#define LIMIT_COMMAND_WAIT	30000u /* ms for the reply to a command */
#define LIMIT_RESOLVE_WAIT	3500u /* ms for a next hop; the engine asks three times, 1 s each */
#define LIMIT_HEARTBEAT_LATE	120u /* ms; the heartbeat changes every 100 ms */
#define LIMIT_MUTE_WAIT		10u /* ms that a read of a mute event descriptor blocks */
#define LIMIT_LOCK_SPINS	64u /* tries of a queue's lock between two sched_yield() */
#define LIMIT_EMPTY_POLLS	64u /* in a row, before the core is offered to others ... */
#define LIMIT_EMPTY_POLLS_EVERY 16u /* ... with one poll in this many */
#define LIMIT_DIRECT_POLLS	16u /* likewise, of a program with the engine inside */
#define LIMIT_OFFER_NS		1000 /* of sleep for an lcore that waits for this processor */
#define LIMIT_COUNTER_POINTS	64u /* of one counters object */

/* Promotion of registered memory, in one program. */
#define LIMIT_PROMOTE_RANGES	 4096u /* promoted ranges */
#define LIMIT_PROMOTE_PEERS	 4096u /* ranges of regions that are not promoted */
#define LIMIT_PROMOTE_LENGTH	 (UINT64_C(1) << 30) /* octets of a region */
#define LIMIT_PROMOTE_SMALL	 (UINT64_C(64) << 10) /* octets: smaller regions are "small" */
#define LIMIT_PROMOTE_SMALLS	 64u /* small regions, ever */
#define LIMIT_PROMOTE_VAIN	 256u /* ranges promoted in vain that are remembered; a power of two */
#define LIMIT_PROMOTE_LOSS	 50u /* ms that a program may lose by promotion in vain ... */
#define LIMIT_PROMOTE_LOOKS	 1000u /* ms that it may look whether memory may be promoted ... */
#define LIMIT_PROMOTE_LOSS_SHARE 50u /* ... and besides one part in this many of its time */
#define LIMIT_PROMOTE_PAYS \
	20 /* a range pays if it stays promoted this many times as long as that took */
#define LIMIT_PROMOTE_TRIES 2u /* in vain, before a range has to wait */
#define LIMIT_PROMOTE_REST \
	256u /* registrations of its first wait; each later wait is four times as long, */
#define LIMIT_PROMOTE_REST_MOST (1u << 20) /* ... up to this */
#define LIMIT_POPULATE_TRIES	1000u /* to take pages back; EAGAIN and EINTR end one */
#define LIMIT_FORK_HOLD		1000u /* ms that a fork holds other threads' writes */

/* The connection manager; times are exponents: 4.096 us * 2^n. */
#define LIMIT_CM_RESPONSE_TIMEOUT 20u /* granted to the peer for an answer, like Linux: 4.29 s */
#define LIMIT_CM_MRA_TIMEOUT	  24u /* asked for by our MRA, like Linux: 68.7 s */
#define LIMIT_CM_RETRIES	  15u
#define LIMIT_CM_EXPONENT_MIN	  8u /* 1.05 ms: messages are never repeated faster */
#define LIMIT_CM_EXPONENT	  24u /* larger exponents of a peer count as this one */
#define LIMIT_CM_SIDR_LINGER	  (10 * TIME_S) /* that a SIDR_REP can be repeated */

/* Neighbours of a port with addresses of its own. Times are nanotime (base/time.h). */
#define LIMIT_NEIGHBOUR_ENTRIES	    1024u
#define LIMIT_NEIGHBOUR_GATEWAYS    4u
#define LIMIT_NEIGHBOUR_FRAMES	    32u /* sent by one tick */
#define LIMIT_NEIGHBOUR_FRAME_BYTES 65536u /* of all these frames together */
#define LIMIT_NEIGHBOUR_TRIES	    3u
#define LIMIT_NEIGHBOUR_INTERVAL    TIME_S /* between two tries */
#define LIMIT_NEIGHBOUR_REACHABLE   (30 * TIME_S) /* an answer is trusted this long, RFC 4861 10 */
#define LIMIT_NEIGHBOUR_FAILED_HOLD (3 * TIME_S) /* a failure is reported this long, then retried */
#define LIMIT_NEIGHBOUR_CHANGE	    (100 * TIME_MS) /* between two changes of a MAC address */
#define LIMIT_NEIGHBOUR_UNUSED	    (600 * TIME_S) /* an entry that is not asked for is dropped */
#define LIMIT_NEIGHBOUR_PLACES	    256u /* for new neighbours, if so many known ones are unused */
#define LIMIT_NEIGHBOUR_OFFER	    (2 * TIME_S) /* flows ask for what they need after news */
#define LIMIT_NEIGHBOUR_OFFER_STEP  (100 * TIME_MS) /* of which one tick counts this much at most */
#define LIMIT_WATCH_SLOTS	    2048u /* next hops with remembered answers of the kernel */
#define LIMIT_WATCH_ROUTES	    (500 * TIME_MS) /* between two reports of changed routes */
#define LIMIT_NEIGHBOURS_ASKED	    256u /* addresses whose last question to the kernel is remembered */
#define LIMIT_JOIN_SOCKETS \
	256u /* of each family; Linux lets one join few groups: igmp_max_memberships, 20 */
#define LIMIT_NETLINK_ANSWERS 16 /* datagrams that are read for one answer */
#define LIMIT_NETLINK_READS   256 /* datagrams of one call; the next call reads the rest */
#define LIMIT_ADDRESS_LOOKS   4 /* at the kernel's list of addresses, if it changes meanwhile */

/* The control thread: how work is cut, how long things are waited for, sizes of tables. */
#define LIMIT_BACKLOG		  256 /* programs that wait to be accepted */
#define LIMIT_RECLAIM		  64u /* objects of a program that ended, between two looks at the clock */
#define LIMIT_RECLAIM_DETACH	  256u /* queue pairs that one message detaches from an lcore */
#define LIMIT_SETTLE_LOOK	  (10 * TIME_MS) /* if no report of an ended copy comes, ... */
#define LIMIT_SETTLE_LOOK_LATER	  (200 * TIME_MS) /* ... and while none is requested */
#define LIMIT_GRAVE_NEW		  (1 * TIME_S) /* an ended client is waited for like a command */
#define LIMIT_DROPS_END_MS	  300 /* for sockets that are given away when the engine ends */
#define LIMIT_SMALL_DISPOSALS	  2048 /* jobs of 512 octets, which are freed at once */
#define LIMIT_HANDLES_AT_REST	  64u /* freed handles of a kind that are not used again yet */
#define LIMIT_PEER_BUCKETS	  65536u
#define LIMIT_DESTINATION_BUCKETS 4096u
#define LIMIT_CM_PORT_FIRST	  32768u /* of the ports that rdma_cm chooses, ... */
#define LIMIT_CM_PORTS		  28232u /* ... and their number */
#define LIMIT_CM_RESOLVE_LOOK	  (2 * TIME_MS) /* between two looks for a neighbour */
#define LIMIT_AH_ASK_US		  2000u /* between two questions of ibv_create_ah for a neighbour */
#define LIMIT_MTU_WITHOUT_PORT	  4200u /* octets; of an engine for programs of its host alone */
#define LIMIT_POOL_CACHE	  256u /* buffers that an lcore keeps to itself */

/* Ports. */
#define LIMIT_PORT_NAP	       (500 * TIME_US) /* sleep of an lcore whose port has no interrupt */
#define LIMIT_PORT_NAPS	       40u /* of them, before an lcore waits for its card's interrupt */
#define LIMIT_LINK_WAIT_S      10u /* at start: some cards need seconds to agree on a speed */
#define LIMIT_NETDEV_RING      (4u << 20) /* octets of af_packet ring per queue and direction */
#define LIMIT_KERNEL_SEGMENTS  16 /* of one frame given to the kernel's interface */
#define LIMIT_IMPAIR_OVERTAKEN 8u /* frames that overtake a reordered one */

/* rdma_cm in a program (lib/rdmacm). */
#define LIMIT_CM_CHANNELS_KEPT 64u /* destroyed channels whose memory is kept for threads in them */
#define LIMIT_EP_RESOLVE_MS    2000 /* for each step of rdma_create_ep */

/* rsockets; sizes are octets. The defaults of /etc/rdma/rsocket are in lib/rdmacm/rs_defaults.c. */
#define LIMIT_RS_QUEUE_MIN	     16 /* requests of a send or receive queue, at least */
#define LIMIT_RS_LOW_WATER	     2048u /* of the buffer, or no message is sent */
#define LIMIT_RS_CHUNK_MIN	     2048u /* the first message of a call; the next ones double */
#define LIMIT_RS_CHUNK_MAX	     65536u
#define LIMIT_RS_BATCH		     16 /* completions that are polled at once */
#define LIMIT_RS_POLL_FEW	     16u /* entries that rpoll() takes without allocating memory */
#define LIMIT_RS_RESOLVE_MS	     8000 /* for each step of rconnect() */
#define LIMIT_RS_CLOSE_MS	     10000 /* that rclose() waits for a peer whose engine is gone */
#define LIMIT_RS_DATAGRAM	     2048 /* one datagram with its header */
#define LIMIT_RS_DATAGRAM_RESOLVE_MS 2000 /* for each step of finding a datagram's path */
#define LIMIT_RS_DATAGRAM_LINGER_MS  1000 /* that rclose() waits for datagrams to leave */
#define LIMIT_RS_SILENCE_MS	     1000 /* of a datagram's destination, until it is asked over UDP */
#define LIMIT_RS_DESTINATIONS	     4096 /* of one socket: any peer can add one by sending to it */
#define LIMIT_RS_RESOLVING	     16 /* ... resolved at once: each has descriptors */
#define LIMIT_RS_UDP_BURST	     64 /* UDP datagrams that are read at once */

/* The memory that both sides of the control socket map, and their messages. */
#define LIMIT_ARENA_BYTES	(UINT64_C(8) << 30) /* sparse: only touched pages use memory */
#define LIMIT_COMMAND_BYTES	4096u /* one control message */
#define LIMIT_COMMAND_FDS	20u /* descriptors with one control message */
#define LIMIT_COMMAND_SLOTS	8u /* commands of a program that wait in its arena */
#define LIMIT_COMMANDS_IN_A_ROW 4u /* commands of a program, before the others have their turn */

#define LIMIT_CLIENT_DM_BYTES (2 * LIMIT_DM_BYTES) /* including what it imports */

static_assert(LIMIT_ENGINE_DM_BYTES >= 2 * LIMIT_DM_BYTES && LIMIT_ENGINE_SRQS >= 2 * LIMIT_SRQS,
	      "one program cannot take everything");
static_assert(LIMIT_TAGS < 0xff00, "entries have 16-bit names");
static_assert((LIMIT_TICKETS & (LIMIT_TICKETS - 1)) == 0, "ticket records are masked");
static_assert((LIMIT_TICKETS_NEW & (LIMIT_TICKETS_NEW - 1)) == 0, "ticket records are masked");
static_assert((LIMIT_MOVER_BATCHES & (LIMIT_MOVER_BATCHES - 1)) == 0, "rings are masked");
static_assert((LIMIT_PROMOTE_VAIN & (LIMIT_PROMOTE_VAIN - 1)) == 0, "hashes are masked");
static_assert(LIMIT_SPANS > 3 * LIMIT_SGE,
	      "every element may be cut by two page-granular edges, and a TSO header comes first");
static_assert(LIMIT_WINDOW <= 256,
	      "a selective acknowledgement names as many packets (SELECTION_BITS)");
static_assert(LIMIT_WINDOW < (1u << 23), "IBTA 9.7.2: never more than half the PSN space");

#endif
