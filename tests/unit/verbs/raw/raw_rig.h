/* SPDX-License-Identifier: BSD-3-Clause */
/* Raw queue pairs of this process, on the engine at $UROCE_SOCKET, and frames for them. */
#ifndef TESTS_VERBS_RAW_RIG_H
#define TESTS_VERBS_RAW_RIG_H

#include <infiniband/verbs.h>

#include "../lcore/raw_frames.h"
#include "rig/endpoint.h"

#define RAW_DEPTH 64
#define RAW_SLOT  8192u /* octets of the buffer for each receive request; the last is for sending */
#define RAW_SEND  (63u * RAW_SLOT)
#define GROUP_MAC "01005e000105"

struct raw_rig {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq; /* of both queue pairs */
	struct ibv_cq_ex *cq_ex;
	struct ibv_mr *mr;
	uint8_t *buffer;
	struct ibv_qp *tx, *rx; /* RTS */
	uint8_t mac[6]; /* the engine's */
	char mac_text[13];
};

void raw_rig_open(struct raw_rig *r);
void raw_rig_close(struct raw_rig *r);

/* A raw queue pair with these flags, in RTS. */
struct ibv_qp *raw_create_qp(struct raw_rig *r, uint32_t create_flags, uint16_t max_tso_header);
int raw_to(struct ibv_qp *qp, enum ibv_qp_state state);

/* A rule without specs but what `attr` says; with an ETH spec of that destination MAC if not NULL. */
struct raw_rule {
	enum ibv_flow_attr_type type;
	uint16_t priority;
	uint32_t flags;
	const char *dst_mac;
	uint32_t tag; /* 0: none */
	bool drop;
	struct ibv_counters *counters;
};
struct ibv_flow *raw_rule(struct ibv_qp *qp, const struct raw_rule *rule);

/* Receive request number `slot` of the buffer. */
void raw_post_recv(struct raw_rig *r, struct ibv_qp *qp, uint32_t slot, uint32_t length);
/* Sends the frame and waits for its completion, which has that status. */
void raw_send(struct raw_rig *r, struct ibv_qp *qp, const struct built_frame *f, unsigned int flags,
	      enum ibv_wc_status status);
/* The next completion; it is a received frame. */
struct ibv_wc raw_receive(struct raw_rig *r, const char *what);

#endif
