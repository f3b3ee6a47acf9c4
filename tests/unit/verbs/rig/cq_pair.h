/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queue pairs of one program, connected to each other, that complete into a CQ of their own. */
#ifndef TESTS_VERBS_CQ_PAIR_H
#define TESTS_VERBS_CQ_PAIR_H

#include <stdbool.h>
#include <time.h>

#include "endpoint.h"

extern struct endpoint e; /* the program: its device, memory and usual CQ */

/* For TestSuite: .init and .fini. */
void open_endpoint(void);
void close_endpoint(void);

struct pair {
	struct ibv_comp_channel *channel; /* NULL: open_pair_on was called */
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
};

void open_pair(struct pair *p, int cqe);
/* On a CQ that the pair destroys when it is closed. */
void open_pair_on(struct pair *p, struct ibv_cq *cq);
void close_pair(struct pair *p);

/* An extended CQ without a channel; NULL with errno. */
struct ibv_cq_ex *extended(uint64_t wc_flags, uint32_t flags, uint32_t cqe);

/* Posts a signaled WRITE of 8 octets. 0 or an errno. */
int post_write(struct ibv_qp *qp, uint64_t wr_id);
/* Posts n of them, with numbers from `first`. */
void post_many(struct ibv_qp *qp, uint64_t first, uint32_t n);
/* ... and returns when all n are in the queue, unpolled; one event stands for all of them. */
void complete_many(struct pair *p, uint64_t first, uint16_t n);
/* Polls them: they are in their order, and nothing follows. */
void expect_in_order(struct ibv_cq *cq, uint64_t first, int n);

struct ibv_modify_cq_attr moderation(uint16_t count, uint16_t period);
/* Whether an event comes in so many milliseconds. Takes it, and acknowledges it. */
bool has_event(struct ibv_comp_channel *channel, int ms);
uint64_t now_ns(clockid_t clock);

#endif
