/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_QP_H
#define VERBS_QP_H

#include "verbs/types.h"

/* work_queue.c: what a queue needs besides its ring. 0 or ENOMEM. */
int work_queue_init(struct work_queue *q, struct rte_ring *ring, uint32_t stride, uint32_t max_wr,
		    uint32_t max_sge, uint32_t remembered);
void work_queue_free(struct work_queue *q);

/* qp_modify.c */
void path_to_engine(struct qp_path *p, const struct ibv_ah_attr *a);

/*
 * qp.c, for whatever has a queue pair inside: its members; its engine side and its place in its
 * CQs and domain (0 or an errno, nothing is left then but the parts); all that back.
 */
void qp_fill(struct qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *init);
int qp_bring_up(struct context *c, struct qp *qp);
int qp_destroy_in_engine(struct context *c, uint32_t handle);
void qp_leave(struct qp *qp);
void qp_free_parts(struct qp *qp);
/* qp_modify.c: in RESET both queues are empty, nothing of before is owed a completion. */
void qp_forget_work(struct qp *qp);

/* wr.c: the functions of ibv_qp_ex and the memory they need. 0 or ENOMEM. */
int qp_ex_fill(struct ibv_qp_ex *qp);

/*
 * post.c, under sq.lock: whether another send request may be posted now (0, EINVAL for the state,
 * ENOMEM for a full queue), the slot it is written to, and what makes it visible. A reserved slot
 * that is not committed is reserved again by the next.
 */
int send_admit(struct qp *qp);
uint32_t send_outstanding(struct qp *qp);
struct send_work *send_reserve(struct qp *qp);
void send_commit(struct qp *qp, const struct send_work *w);
/* Tells the lcore that there are new requests. */
void qp_ring_doorbell(struct qp *qp);

/* Copies `count` buffers into the slot as inline data. 0, or EINVAL: too long. */
int send_write_inline(struct qp *qp, struct send_work *w, const struct ibv_data_buf *buffers,
		      size_t count);
/* Copies the elements. 0, or EINVAL: too many, or more than 2^31 octets. */
/* Eight octets inline, whatever inline data the queue pair was made for. */
void send_write_word(struct send_work *w, const void *octets);
int send_write_elements(struct qp *qp, struct send_work *w, const struct ibv_sge *sge,
			size_t count);

/* UD: where it goes. 0, or EINVAL: the address handle is of another protection domain. */
int send_write_datagram(const struct qp *qp, struct send_work *w, const struct ibv_ah *ah,
			uint32_t remote_qpn, uint32_t remote_qkey);
/* Of a complete request: 0, or EINVAL: a datagram without an address, or too long. */
int send_check(const struct qp *qp, const struct send_work *w);

#endif
