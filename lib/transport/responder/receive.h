/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive requests that are done: a queue in order of arrival. Each completion waits for a ticket,
 * so that a program sees it after the octets.
 */
#ifndef TRANSPORT_RECEIVE_H
#define TRANSPORT_RECEIVE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "base/work.h"

enum receive_flag {
	RECEIVE_IMM = 1 << 0,
	RECEIVE_SOLICITED = 1 << 1,
	RECEIVE_BY_WRITE = 1 << 2,
	RECEIVE_INV = 1 << 3,
	RECEIVE_CHECKSUM_OK = 1 << 4,
	RECEIVE_IPV4 = 1 << 5, /* UD */
};

struct receive_done {
	uint64_t wr_id;
	uint32_t ticket; /* that it waits for, low 32 bits */
	uint32_t byte_len;
	uint32_t imm; /* RAW_PACKET: the VLAN tag */
	uint32_t src_qpn; /* datagrams: the sender; RAW_PACKET: the flow tag */
	uint32_t srq : 24; /* that the request came from; 0: the queue pair's own queue */
	uint32_t flags : 8; /* enum receive_flag */
	uint16_t mark; /* of the receive request */
	uint8_t status; /* enum work_status */
	uint8_t reason; /* enum reason */
};

static_assert(sizeof(struct receive_done) == 32, "a queue pair has room for many");

struct receives {
	uint32_t taken, done; /* free-running: [taken, done) are waiting */
	uint32_t mask;
	struct receive_done *ring; /* of mask + 1, a power of two */
};

static inline struct receive_done *receive_at(const struct receives *r, uint32_t index)
{
	return &r->ring[index & r->mask];
}

static inline bool receives_waiting(const struct receives *r)
{
	return r->taken != r->done;
}

/* There is room: qp_can_receive said so. */
void receive_push(struct receives *r, const struct receive_done *d);

/*
 * Nothing at or behind a ticket was received after all: the first such request completes with this
 * status and reason, the others as flushed.
 */
void receives_fail_behind(struct receives *r, uint64_t ticket, enum work_status status,
			  enum reason why);

#endif
