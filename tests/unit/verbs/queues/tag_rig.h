/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of tag matching begin with: a tag matching SRQ with one queue pair, and a peer that
 * sends to it.
 */
#ifndef TESTS_VERBS_TAG_RIG_H
#define TESTS_VERBS_TAG_RIG_H

#include <infiniband/tm_types.h>
#include <stdbool.h>
#include <stdint.h>

#include "rig/endpoint.h"

#define TAGS	64u
#define SENDS	64u
#define SOURCE	(BUFFER / 2) /* offset of what the peer sends */
#define FETCHED (SOURCE + 16384) /* ... and of what a rendezvous names */
#define FINS	(BUFFER - 4096)
#define APP	0xabcd1234u

extern struct endpoint e;
extern struct ibv_cq_ex *tag_cq;
extern struct ibv_srq *tag_srq;
extern struct ibv_qp *peer, *tagged;

struct seen {
	uint64_t wr_id, tag;
	uint32_t status, opcode, flags, byte_len, qp_num, priv;
};

struct ibv_srq_init_attr_ex usual(void);
struct ibv_qp *create_qp(struct ibv_srq *on, enum ibv_qp_type type);
void tag_setup(void);
void tag_teardown(void);
double now(void);
bool poll_tagged(struct seen *s);
struct seen next(const char *what);
void expect_seen(struct seen s, uint64_t wr_id, uint32_t opcode, uint32_t flags);
struct ibv_ops_wr operation(enum ibv_ops_wr_opcode opcode, uint64_t wr_id);
int post_operation(struct ibv_ops_wr *wr);
/*
 * Adds an entry of one element at the start of the buffer and takes its completion. Returns its
 * handle.
 */
struct seen add(uint64_t tag, uint64_t mask, uint32_t length, uint32_t *handle);
void added(uint64_t tag, uint32_t length);
struct seen delete (uint32_t handle);
struct seen sync_to(uint32_t handled);
void receive(uint64_t wr_id);
void send_from(struct ibv_qp *qp, uint32_t offset, uint32_t length);
void header(uint32_t offset, uint8_t opcode, uint64_t tag);
void send_tagged(uint8_t opcode, uint64_t tag, uint32_t length);
void send_rendezvous_with(uint32_t slot, uint64_t tag, uint32_t length, uint32_t rkey);
void send_rendezvous(uint64_t tag, uint32_t length);
/* The peer's completion of a message. */
void sent(enum ibv_wc_status status);
void expect_fin(uint64_t tag);
void receive_fin(void);

#endif
