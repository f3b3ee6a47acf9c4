/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control commands of raw packets: work queues, receive side scaling, steering. Included at the
 * end of command.h.
 */
#ifndef PROTOCOL_COMMAND_RAW_H
#define PROTOCOL_COMMAND_RAW_H

#include "protocol/command.h"
#include "protocol/flow_key.h"

/* Further properties of a RAW_PACKET queue pair. */
enum raw_flag {
	RAW_WQ = 1 << 0, /* a work queue (ibv_create_wq(3)): no send queue, send_cq is recv_cq */
	RAW_STRIP_VLAN = 1 << 1, /* moves the VLAN tag of received frames into the completion */
	RAW_BLOCK_LOOPBACK = 1 << 2, /* does not receive its own multicast frames */
	RAW_FLAGS = 7,
};

struct request_modify_wq {
	struct command_request h;
	uint32_t wq; /* handle of the queue pair that implements it */
	uint32_t mask; /* ibv_wq_attr_mask */
	uint32_t state; /* ibv_wq_state */
	uint32_t current_state;
	uint32_t flags; /* ibv_wq_flags */
	uint32_t flags_mask;
};

struct request_create_rwq_table {
	struct command_request h;
	uint32_t context;
	uint32_t log_size; /* the table has 2^log_size entries, all in wq[] */
	uint32_t wq[LIMIT_RWQ_TABLE];
};

/* Creates a queue pair that spreads the frames of its rules over a table by a Toeplitz hash. */
struct request_create_rss {
	struct command_request h;
	uint32_t pd;
	uint32_t table;
	uint32_t fields; /* ibv_rx_hash_fields */
	uint8_t key[40];
	uint32_t reserved;
};

struct request_create_flow {
	struct command_request h;
	uint32_t qp; /* this or rss is given; the other is 0 */
	uint32_t rss;
	uint32_t kind; /* enum flow_kind */
	uint32_t priority; /* 0 .. 65535 */
	uint32_t layers; /* enum flow_layer */
	uint32_t actions; /* enum flow_action */
	uint32_t tag;
	uint32_t counters; /* handle; 0: none */
	struct flow_key value, mask;
};

struct request_attach_counters {
	struct command_request h;
	uint32_t counters;
	uint32_t flow;
};

struct reply_counters {
	struct command_reply h;
	uint64_t packets;
	uint64_t octets;
};

#endif
