/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a queue pair is made with and what ibv_modify_qp(3) sets: plain values with the numbers of
 * verbs.h (lib/verbs asserts it). They cross the control socket as they stand.
 */
#ifndef TRANSPORT_ATTRIBUTES_H
#define TRANSPORT_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/* ibv_qp_type */
enum qp_type {
	QP_TYPE_RC = 2,
	QP_TYPE_UC = 3,
	QP_TYPE_UD = 4,
	QP_TYPE_RAW_PACKET = 8,
	QP_TYPE_XRC_SEND = 9,
	QP_TYPE_XRC_RECV = 10,
};

/* ibv_qp_state */
enum qp_state {
	QP_STATE_RESET = 0,
	QP_STATE_INIT = 1,
	QP_STATE_RTR = 2,
	QP_STATE_RTS = 3,
	QP_STATE_SQD = 4,
	QP_STATE_SQE = 5,
	QP_STATE_ERR = 6,
};

/* ibv_qp_attr_mask */
enum qp_attribute {
	QP_ATTR_STATE = 1 << 0,
	QP_ATTR_CUR_STATE = 1 << 1,
	QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	QP_ATTR_ACCESS_FLAGS = 1 << 3,
	QP_ATTR_PKEY_INDEX = 1 << 4,
	QP_ATTR_PORT = 1 << 5,
	QP_ATTR_QKEY = 1 << 6,
	QP_ATTR_AV = 1 << 7,
	QP_ATTR_PATH_MTU = 1 << 8,
	QP_ATTR_TIMEOUT = 1 << 9,
	QP_ATTR_RETRY_CNT = 1 << 10,
	QP_ATTR_RNR_RETRY = 1 << 11,
	QP_ATTR_RQ_PSN = 1 << 12,
	QP_ATTR_MAX_RD_ATOMIC = 1 << 13,
	QP_ATTR_ALT_PATH = 1 << 14,
	QP_ATTR_MIN_RNR_TIMER = 1 << 15,
	QP_ATTR_SQ_PSN = 1 << 16,
	QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
	QP_ATTR_PATH_MIG_STATE = 1 << 18,
	QP_ATTR_CAP = 1 << 19,
	QP_ATTR_DEST_QPN = 1 << 20,
	QP_ATTR_RATE_LIMIT = 1 << 25,
};

/* An address vector as modify_qp names it, resolved as far as the core needs it. */
struct qp_path {
	struct gid dgid; /* in network order */
	struct gid sgid; /* the port's GID at sgid_index: filled in by the control path */
	uint32_t flow_label;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t sl;
	uint8_t port_num;
	uint8_t is_global; /* always 1 on RoCE */
	uint16_t dlid; /* kept for query_qp only */
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t reserved[2];
};

/* ibv_qp_attr, as plain values that cross the control socket. */
struct qp_attributes {
	uint32_t state; /* enum qp_state */
	uint32_t cur_state;
	uint32_t path_mtu; /* ibv_mtu: 1 = 256 .. 5 = 4096 octets */
	uint32_t path_mig_state; /* ibv_mig_state: 0 = MIGRATED, ... */
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qpn;
	uint32_t access_flags; /* enum access_flag */
	uint32_t rate_limit; /* kbit/s; 0: none */
	uint16_t pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout; /* 4.096 us * 2^timeout; 0: none */
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t reserved;
	struct qp_path path;
};

/* Fixed at creation. */
struct qp_caps {
	uint8_t type; /* enum qp_type */
	bool records_later; /* qp_init's memory has no room for a peer's READs and atomics */
	bool sq_sig_all;
	bool has_srq; /* receive requests come from an SRQ; XRC targets always */
	uint32_t qpn; /* 24 bits */
	uint32_t pd; /* handle */
	uint32_t handle; /* of the queue pair, for completions */
	uint32_t max_send_wr; /* window slots, >= 1 where there is a send queue */
	uint16_t max_send_sge;
	uint16_t max_recv_sge; /* of its receive queue, or of its SRQ; XRC target: of any SRQ */
	uint16_t max_inline; /* octets; ATOMIC WRITE may always bring eight */
	uint16_t own_wr; /* the caller's own requests besides: qp_own_slot() */
	uint16_t max_rd_atomic; /* device limit of both directions, <= LIMIT_RD_ATOMIC */
	uint16_t port_mtu; /* ibv_mtu that the port can carry */
	uint16_t tickets; /* room for unsettled copies, a power of two; 0: LIMIT_TICKETS */
	uint32_t max_frame; /* RAW_PACKET: octets of a frame (the port's Ethernet MTU + 18) */
	uint32_t srq_pd; /* of its SRQ, whose elements are checked against it; 0: `pd` */
	uint32_t srq; /* engine-wide number of its SRQ: goes into receive completions; 0: none */
};

/* The service neither acknowledges nor repeats packets. */
static inline bool qp_type_unreliable(uint32_t type)
{
	return type == QP_TYPE_UC || type == QP_TYPE_UD || type == QP_TYPE_RAW_PACKET;
}

/* A message is one packet (except TSO on UD). */
static inline bool qp_type_datagram(uint32_t type)
{
	return type == QP_TYPE_UD || type == QP_TYPE_RAW_PACKET;
}

#endif
