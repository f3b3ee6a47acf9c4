/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control commands: plain structs of handles and values. They are the same over the socket
 * (attached) and by direct call (embedded). They contain no pointer into the other side; addresses
 * of the program's memory travel as numbers.
 *
 * The socket is SOCK_SEQPACKET: each message is one request or one reply, and requests are answered
 * in order. After HELLO messages without descriptors travel in the arena (queue/command_slot.h). A
 * program has one command under way, here or there, and those that it posted before. A handle belongs to one client (a process) and one type, and is never 0. A handle of
 * another type or of another client gives EINVAL and reveals nothing. An object belongs to a
 * context (ibv_open_device). It is destroyed at the latest when its context is closed or its client
 * dies.
 *
 * Change COMMAND_VERSION with any change of a struct here or of what both sides map (lib/queue).
 */
#ifndef PROTOCOL_COMMAND_H
#define PROTOCOL_COMMAND_H

#include <assert.h>
#include <stdint.h>

#include "config/limits.h"
#include "transport/transport.h"
#include "wire/envelope.h"

#define COMMAND_MAGIC	0x4f525545u /* "UERO" */
#define COMMAND_VERSION 14u

/* Commands of raw packets: command_raw.h. */
#define RAW_COMMANDS(X)                                             \
	X(MODIFY_WQ, request_modify_wq, reply_modify_qp)            \
	X(CREATE_RWQ_TABLE, request_create_rwq_table, reply_handle) \
	X(DESTROY_RWQ_TABLE, request_handle, reply_empty)           \
	X(CREATE_RSS, request_create_rss, reply_handle)             \
	X(DESTROY_RSS, request_handle, reply_empty)                 \
	X(CREATE_FLOW, request_create_flow, reply_handle)           \
	X(DESTROY_FLOW, request_handle, reply_empty)                \
	X(CREATE_COUNTERS, request_handle, reply_handle)            \
	X(ATTACH_COUNTERS, request_attach_counters, reply_empty)    \
	X(READ_COUNTERS, request_handle, reply_counters)            \
	X(DESTROY_COUNTERS, request_handle, reply_empty)

/* Commands of the connection manager: command_cm.h. */
#define COMMANDS_CM(X)                                                \
	X(CM_CREATE_CHANNEL, request_empty, reply_cm_channel)         \
	X(CM_DESTROY_CHANNEL, request_handle, reply_empty)            \
	X(CM_CREATE_ID, request_cm_create_id, reply_handle)           \
	X(CM_DESTROY_ID, request_handle, reply_cm_gone)               \
	X(CM_BIND, request_cm_bind, reply_cm_query)                   \
	X(CM_RESOLVE_ADDR, request_cm_resolve, reply_cm_query)        \
	X(CM_RESOLVE_ROUTE, request_cm_timeout, reply_empty)          \
	X(CM_LISTEN, request_cm_listen, reply_empty)                  \
	X(CM_CONNECT, request_cm_connect, reply_empty)                \
	X(CM_ACCEPT, request_cm_connect, reply_modify_qp)             \
	X(CM_REJECT, request_cm_reject, reply_empty)                  \
	X(CM_DISCONNECT, request_handle, reply_empty)                 \
	X(CM_ESTABLISH, request_handle, reply_empty)                  \
	X(CM_NOTIFY, request_cm_notify, reply_empty)                  \
	X(CM_JOIN, request_cm_join, reply_handle)                     \
	X(CM_LEAVE, request_cm_leave, reply_cm_gone)                  \
	X(CM_MIGRATE, request_cm_migrate, reply_cm_gone)              \
	X(CM_SET_OPTION, request_cm_option, reply_empty)              \
	X(CM_QUERY, request_handle, reply_cm_query)                   \
	X(CM_INIT_QP_ATTR, request_cm_init_qp_attr, reply_cm_qp_attr) \
	X(CM_MODIFY_QP, request_cm_modify_qp, reply_modify_qp)        \
	X(CM_GET_EVENT, request_handle, reply_cm_event)               \
	X(CM_LIST, request_cm_list, reply_cm_list)

/* Commands that list objects for people: command_list.h. */
#define LIST_COMMANDS(X)                                  \
	X(QP_LIST, request_list, reply_qp_list)           \
	X(MR_LIST, request_list, reply_mr_list)           \
	X(PROGRAM_LIST, request_list, reply_program_list) \
	X(NEIGHBOUR_LIST, request_list, reply_neighbour_list)

/* X(NAME, request struct, reply struct) */
#define COMMANDS(X)                                         \
	X(DEVICE, request_empty, reply_device)              \
	X(HELLO, request_hello, reply_hello)                \
	X(OPEN_CONTEXT, request_empty, reply_context)       \
	X(CLOSE_CONTEXT, request_handle, reply_empty)       \
	X(ALLOC_PD, request_handle, reply_handle)           \
	X(DEALLOC_PD, request_handle, reply_empty)          \
	X(PROMOTED_FILE, request_empty, reply_empty)        \
	X(REG_MR, request_reg_mr, reply_reg_mr)             \
	X(DEREG_MR, request_handle, reply_empty)            \
	X(REREG_MR, request_rereg_mr, reply_reg_mr)         \
	X(ALLOC_NULL_MR, request_handle, reply_reg_mr)      \
	X(ADVISE_MR, request_advise_mr, reply_advise_mr)    \
	X(ALLOC_MW, request_alloc_mw, reply_alloc_mw)       \
	X(DEALLOC_MW, request_handle, reply_empty)          \
	X(CREATE_CHANNEL, request_handle, reply_handle)     \
	X(DESTROY_CHANNEL, request_handle, reply_empty)     \
	X(CREATE_CQ, request_create_cq, reply_create_cq)    \
	X(RESIZE_CQ, request_resize_cq, reply_create_cq)    \
	X(CQ_RING_LEFT, request_handle, reply_empty)        \
	X(MODIFY_CQ, request_modify_cq, reply_empty)        \
	X(WAKE_CQ, request_handle, reply_empty)             \
	X(DESTROY_CQ, request_handle, reply_destroy)        \
	X(CREATE_QP, request_create_qp, reply_create_qp)    \
	X(MODIFY_QP, request_modify_qp, reply_modify_qp)    \
	X(QUERY_QP, request_handle, reply_query_qp)         \
	X(DESTROY_QP, request_handle, reply_destroy)        \
	X(CREATE_AH, request_create_ah, reply_ah)           \
	X(QUERY_AH, request_handle, reply_ah)               \
	X(DESTROY_AH, request_handle, reply_empty)          \
	X(RESOLVE_PATH, request_path, reply_ah)             \
	X(ATTACH_MCAST, request_mcast, reply_empty)         \
	X(DETACH_MCAST, request_mcast, reply_empty)         \
	X(ALLOC_DM, request_alloc_dm, reply_dm)             \
	X(FREE_DM, request_handle, reply_empty)             \
	X(REG_DM_MR, request_reg_dm_mr, reply_reg_mr)       \
	X(IMPORT_CONTEXT, request_empty, reply_context)     \
	X(IMPORT_PD, request_import, reply_handle)          \
	X(IMPORT_MR, request_import, reply_import_mr)       \
	X(UNIMPORT_MR, request_handle, reply_empty)         \
	X(IMPORT_DM, request_import, reply_dm)              \
	X(CREATE_SRQ, request_create_srq, reply_create_srq) \
	X(MODIFY_SRQ, request_modify_srq, reply_modify_srq) \
	X(QUERY_SRQ, request_handle, reply_query_srq)       \
	X(DESTROY_SRQ, request_handle, reply_destroy)       \
	X(OPEN_XRCD, request_open_xrcd, reply_handle)       \
	X(CLOSE_XRCD, request_handle, reply_empty)          \
	X(OPEN_QP, request_open_qp, reply_create_qp)        \
	RAW_COMMANDS(X)                                     \
	X(STATISTICS, request_empty, reply_statistics)      \
	COMMANDS_CM(X)                                      \
	LIST_COMMANDS(X)                                    \
	X(CAPTURE, request_capture, reply_capture)          \
	X(PATH_LIST, request_list, reply_path_list)         \
	X(TRACE, request_trace, reply_trace)                \
	X(CYCLES, request_cycles, reply_cycles)             \
	X(LEAVE_PROMOTED, request_leave_promoted, reply_empty)

enum command {
#define X(NAME, request, reply) COMMAND_##NAME,
	COMMANDS(X)
#undef X
	COMMAND_COUNT
};

struct command_request {
	uint32_t magic;
	uint16_t version;
	uint16_t command; /* enum command */
	uint32_t length; /* octets of the whole message */
	uint32_t sequence; /* repeated in the reply */
};

struct command_reply {
	uint32_t magic;
	uint16_t version;
	uint16_t command;
	uint32_t length;
	uint32_t sequence;
	int32_t error; /* 0, or a positive errno: then only `why` follows */
	uint32_t reserved;
	char why[104]; /* the argument or limit at fault; "" if there is nothing to add */
};

struct request_empty {
	struct command_request h;
};

struct reply_empty {
	struct command_reply h;
};

struct request_handle { /* the object, or the context or PD in which it is created */
	struct command_request h;
	uint32_t handle;
	uint32_t reserved;
};

struct reply_handle {
	struct command_reply h;
	uint32_t handle;
	uint32_t reserved;
}; /* CREATE_CHANNEL: one descriptor, the program's end of the channel */

struct reply_destroy {
	struct command_reply h;
	uint32_t events; /* events sent for the object so far (completion or asynchronous) */
	uint32_t reserved;
};

#define DEVICE_VENDOR_ID 0x75726fu /* "uro" */
/*
 * perftest decides by this number alone. It refuses inline data for numbers that it does not know,
 * and expects libmlx5 for those of newer ConnectX devices. This number belongs to neither group.
 */
#define DEVICE_PART_ID	 4099u

/* Everybody who may connect may ask, without HELLO. Read-only. */
struct reply_device {
	struct command_reply h;
	char name[32]; /* "uroce0" */
	uint64_t node_guid; /* network order */
	uint64_t sys_image_guid;
	uint64_t engine_id; /* random, and different after each restart */
	uint32_t lcores;
	uint32_t max_qp, max_qp_wr, max_sge, max_inline, max_rd_atomic;
	uint32_t max_cq, max_cqe, max_mr, max_pd, max_channels;
	uint32_t max_ah, max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach;
	uint32_t max_srq, reserved1;
	uint64_t max_mr_size;
	uint64_t max_dm_size; /* octets that one program may allocate */
	/* port 1 */
	uint8_t port_state; /* ibv_port_state: 4 = ACTIVE, 1 = DOWN */
	uint8_t active_mtu; /* ibv_mtu */
	uint8_t max_mtu;
	uint8_t active_speed; /* as ibv_port_attr */
	uint8_t active_width;
	uint8_t gid_count; /* entries of gid[] in use; an all-zero entry is free */
	uint8_t mac[6];
	uint32_t bad_pkey;
	uint32_t qkey_violations;
	struct gid gid[LIMIT_GIDS];
	char netdev[16]; /* the Linux interface behind the port; "" if none */
	uint32_t ifindex;
	uint32_t link_speed; /* Mbit/s; 0: the port does not know it, or there is no port */
};

/*
 * The engine itself opens the memory of the process at the other end of the connection. If it may
 * not, it answers EACCES. The client then sends HELLO again with descriptor [0]: its
 * /proc/self/mem, opened O_RDWR.
 */
struct request_hello {
	struct command_request h;
	uint32_t pid; /* as the client sees it; for messages only */
	uint32_t reserved;
	char program[32]; /* for messages and `uroce stat` */
	uint8_t proof[16]; /* the octets that AT_RANDOM points to (getauxval(3)), ... */
	uint64_t proof_at; /* ... and their address */
};

/*
 * Descriptors out: [0] the arena, [1 .. lcores] the lcores' eventfds, [lcores + 1] the eventfd that
 * announces a command in the arena.
 */
struct reply_hello {
	struct command_reply h;
	uint64_t engine_id;
	uint64_t arena_bytes;
	uint32_t client; /* number */
	uint32_t lcores;
	uint64_t bell_offset[LIMIT_LCORES]; /* doorbell rings in the arena */
	uint64_t slots_offset; /* struct command_slots */
};

/* Descriptors out: [0] the async event fd, [1] the context's token. */
struct reply_context {
	struct command_reply h;
	uint32_t handle;
	uint32_t reserved;
};

/*
 * The content of a context's token: a sealed memfd that stands for the context while the context is
 * open. IMPORT_CONTEXT takes its descriptor and makes a context that may import the objects of the
 * token's context by their handles there. A copy of the octets in another file is not a token. The
 * path is for finding the engine.
 */
struct context_token {
	uint32_t magic; /* COMMAND_MAGIC */
	uint32_t version; /* COMMAND_VERSION */
	uint64_t engine_id;
	uint8_t secret[16];
	char path[108]; /* of the engine's socket; "" if it has none */
	uint32_t reserved;
};

struct request_create_cq {
	struct command_request h;
	uint32_t context;
	uint32_t channel; /* handle; 0: none */
	uint32_t cqe; /* requested, 1 .. LIMIT_CQE */
	uint32_t comp_vector;
	uint64_t cookie; /* returned in completion and asynchronous events */
	uint32_t flags; /* enum cq_flag */
	uint32_t reserved;
};

/* the ibv_create_cq_attr_flags that concern the engine */
enum cq_flag {
	CQ_FLAG_IGNORE_OVERRUN = 2,
};

/*
 * The answer names the ring to which completions go from now on (queue/cq_resize.h). The program
 * takes what the old one holds and then sends CQ_RING_LEFT, and the old one is freed. Another
 * RESIZE_CQ has the same effect as CQ_RING_LEFT. If the answer names the ring that the CQ has, the
 * size stays.
 */
struct request_resize_cq {
	struct command_request h;
	uint32_t cq;
	uint32_t cqe; /* requested; EINVAL if the ring holds more completions */
};

struct request_modify_cq {
	struct command_request h;
	uint32_t cq;
	uint32_t reserved;
	uint32_t count; /* completions before an event, 0 .. LIMIT_MODERATION; 0: no limit */
	uint32_t period; /* longest delay of an event in us, 0 .. LIMIT_MODERATION; 0: no limit */
};

struct reply_create_cq {
	struct command_reply h;
	uint32_t handle;
	uint32_t cqe; /* granted, >= wanted */
	uint32_t ring_size; /* slots of sizeof(struct completion) */
	uint32_t reserved;
	uint64_t ring_offset;
	uint64_t page_offset; /* struct cq_page */
};

struct request_create_qp {
	struct command_request h;
	uint32_t pd;
	uint32_t type; /* enum qp_type */
	uint32_t send_cq;
	uint32_t recv_cq;
	uint32_t srq; /* 0: none */
	uint32_t sq_sig_all;
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	uint16_t raw_flags; /* enum raw_flag */
	uint16_t max_tso_header; /* UD, RAW_PACKET: octets */
	uint32_t xrcd; /* XRC_RECV: then pd, CQs, SRQ and sizes are ignored */
	/* not XRC_RECV: it goes to INIT (UD: RTS) as this id says, if it can; 0: none */
	uint32_t cm_id;
	uint64_t cookie; /* returned in asynchronous events */
};

struct reply_create_qp {
	struct command_reply h;
	uint32_t handle;
	uint32_t qpn;
	uint32_t lcore; /* the lcore with its doorbell ring and eventfd */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline; /* granted */
	uint32_t sq_size, sq_stride; /* slots, octets */
	uint32_t rq_size, rq_stride;
	uint64_t sq_offset; /* rings in the arena */
	uint64_t rq_offset;
	uint64_t page_offset; /* struct qp_page */
	uint32_t state; /* enum qp_state: RESET, unless `cm_id` moved it */
	uint32_t mtu; /* octets of the longest datagram */
};

struct request_modify_qp {
	struct command_request h;
	uint32_t qp;
	uint32_t mask; /* enum qp_attribute */
	struct qp_attributes attributes;
};

struct reply_modify_qp {
	struct command_reply h;
	uint32_t state; /* after the change */
	uint32_t mtu; /* MODIFY_QP: octets of a datagram that the port carries; otherwise 0 */
};

struct reply_query_qp {
	struct command_reply h;
	struct qp_attributes attributes;
};

enum ah_state { /* whether the MAC address of the next hop is known */
	AH_RESOLVED,
	AH_RESOLVING, /* address resolution is under way: ask QUERY_AH or RESOLVE_PATH */
	AH_UNREACHABLE, /* the next hop does not answer, or there is no route */
};

struct request_create_ah {
	struct command_request h;
	uint32_t pd;
	uint32_t reserved;
	struct qp_path path;
};

struct request_path { /* resolves the next hop and creates no object */
	struct command_request h;
	struct qp_path path;
};

struct reply_ah {
	struct command_reply h;
	uint32_t handle; /* CREATE_AH */
	uint32_t state; /* enum ah_state */
	uint8_t mac[6]; /* of the next hop, once resolved */
	uint16_t vlan; /* of the port; 0: untagged */
};

enum xrcd_flag {
	XRCD_CREATE = 1 << 0, /* O_CREAT */
	XRCD_EXCLUSIVE = 1 << 1, /* O_EXCL */
};

/* Descriptors in: [0] the file that names the domain; none for a private domain. */
struct request_open_xrcd {
	struct command_request h;
	uint32_t context;
	uint32_t flags; /* enum xrcd_flag */
};

/* Makes a handle, in this domain, of an existing XRC target. */
struct request_open_qp {
	struct command_request h;
	uint32_t xrcd;
	uint32_t qpn;
	uint32_t type; /* enum qp_type */
	uint32_t reserved;
	uint64_t cookie; /* returned in asynchronous events */
};

struct request_create_srq {
	struct command_request h;
	uint32_t pd;
	uint32_t type; /* ibv_srq_type: 0 basic, 1 XRC, 2 tag matching */
	uint32_t cq; /* XRC, tag matching: receives complete here */
	uint32_t xrcd; /* XRC */
	uint32_t max_wr, max_sge;
	uint32_t limit;
	uint32_t max_tags, max_ops; /* tag matching */
	uint32_t reserved;
	uint64_t cookie; /* returned in asynchronous events */
};

struct reply_create_srq {
	struct command_reply h;
	uint32_t handle;
	uint32_t srqn;
	uint32_t max_wr, max_sge; /* granted */
	uint32_t ring_size, stride; /* slots, octets */
	uint64_t ring_offset; /* in the arena */
	uint64_t page_offset; /* struct srq_page */
	uint64_t ops_offset; /* tag matching: a ring of struct tag_work, */
	uint32_t ops_size, ops_stride;
	uint32_t lcore; /* the lcore with its doorbell ring and eventfd */
	uint32_t reserved;
};

/* ibv_srq_attr_mask */
enum srq_attribute {
	SRQ_ATTR_MAX_WR = 1 << 0,
	SRQ_ATTR_LIMIT = 1 << 1,
};

struct request_modify_srq {
	struct command_request h;
	uint32_t srq;
	uint32_t mask; /* enum srq_attribute */
	uint32_t max_wr;
	uint32_t limit;
};

/* After a resize, requests are posted into the ring that the reply names. */
struct reply_modify_srq {
	struct command_reply h;
	uint32_t max_wr; /* the present value */
	uint32_t ring_size; /* 0: the ring stays */
	uint64_t ring_offset;
};

struct reply_query_srq {
	struct command_reply h;
	uint32_t max_wr, max_sge;
	uint32_t limit; /* 0: not armed, or its event has been sent */
	uint32_t reserved;
};

#define STATISTICS_KINDS 24u

/*
 * Adds a UD queue pair to a multicast group, or removes it. It is not an error to add a member
 * again.
 */
struct request_mcast {
	struct command_request h;
	uint32_t qp;
	uint32_t reserved;
	struct gid group;
};

/* Counters. Everybody who may connect may ask. */
struct reply_statistics {
	struct command_reply h;
	/* these only grow: */
	uint64_t rx_packets, rx_octets, tx_packets, tx_octets;
	uint64_t retransmitted, timeouts, rnr_naks;
	uint64_t ecn_marked, cnps_sent; /* received with CE; congestion notifications */
	uint64_t crossed; /* frames that arrived at an lcore other than that of their queue pair */
	uint64_t polls, idle_polls;
	uint64_t kernel_given, kernel_taken; /* frames to the kernel's interface, and from it */
	uint64_t mrs_made, mrs_ended; /* regions and windows */
	/* messages that peers began; atomics: compare and swap, fetch and add */
	uint64_t writes_begun, reads_begun, atomics_begun;
	uint64_t access_refused; /* NAKs for a remote access error */
	uint64_t sends, receives; /* SEND requests of programs; receives that succeeded */
	/* completions in error, and those of them that are flushes */
	uint64_t requests_failed, requests_flushed, receives_failed, receives_flushed;
	uint64_t links_lost;
	/* ... up to here, and by_reason */
	uint32_t clients, qps, cqs, mrs;
	uint32_t objects[STATISTICS_KINDS]; /* of all clients, by enum object_kind */
	uint64_t qp_memory; /* octets of engine memory that queue pairs use */
	uint64_t connections; /* of the connection manager, including those in TIMEWAIT */
	char priority[32]; /* of a woken lcore: urgency_name() */
	uint64_t by_reason[REASON_COUNT];
};

/* One message on an asynchronous event descriptor (SOCK_SEQPACKET). */
struct async_message {
	uint32_t event; /* ibv_event_type */
	uint32_t object; /* 0: port/device, 1: QP, 2: CQ, 3: SRQ, 4: WQ */
	uint64_t cookie; /* of the object; port number for port events */
};

/* One message on a completion channel (SOCK_SEQPACKET). */
struct channel_message {
	uint64_t cookie; /* of the CQ */
};

static_assert(sizeof(struct reply_statistics) <= LIMIT_COMMAND_BYTES, "counters fit one message");

#include "protocol/command_capture.h"
#include "protocol/command_cm.h"
#include "protocol/command_cycles.h"
#include "protocol/command_list.h"
#include "protocol/command_memory.h"
#include "protocol/command_raw.h"
#include "protocol/command_trace.h"

#endif
