/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: what their files share. */
#ifndef VERBS_QP_H
#define VERBS_QP_H

#include "verbs/types.h"

/*
 * work_queue.c: sets up the library's part of a queue, with memory for `remembered` requests. The
 * caller has set q->domain. 0 or ENOMEM.
 */
int work_queue_init(struct work_queue *q, struct rte_ring *ring, uint32_t stride, uint32_t max_wr,
		    uint32_t max_sge, uint32_t remembered);
void work_queue_free(struct work_queue *q);

/* qp_modify.c: converts an address vector for the engine. */
void path_to_engine(struct qp_path *p, const struct ibv_ah_attr *a);

/*
 * qp.c: the life of a queue pair that may be part of another struct.
 *
 *	qp_fill			sets its members
 *	qp_bring_up		creates it in the engine and adds it to its CQs and other objects;
 *				0 or an errno, and then only qp_free_parts is needed
 *	qp_destroy_in_engine	destroys it there; 0 or an errno. *sent: how many asynchronous
 *				events the engine sent for it; UINT32_MAX: that is unknown
 *	qp_withdraw_events	takes back those that nobody has received. The queue pair is
 *				destroyed in the engine and has left the objects (verbs_object_leave)
 *	qp_leave		takes it out of its CQs and other objects
 *	qp_free_parts		frees what it points to, but not the struct
 */
void qp_fill(struct qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *init);
int qp_bring_up(struct context *c, struct qp *qp);
int qp_destroy_in_engine(struct context *c, uint32_t handle, uint32_t *sent);
void qp_withdraw_events(struct context *c, const struct qp *qp, uint32_t sent);
void qp_leave(struct qp *qp);
void qp_free_parts(struct qp *qp);
/*
 * qp_modify.c: posting is refused from qp_begin_reset to qp_end_reset. Otherwise requests could come
 * in after the engine has discarded what was in the rings, and would be executed when the queue pair
 * is connected again. After a reset, qp_forget_work makes both queues empty; earlier requests get no
 * completions.
 */
void qp_begin_reset(struct qp *qp);
void qp_forget_work(struct qp *qp);
void qp_end_reset(struct qp *qp);

/* wr.c: sets the functions of ibv_qp_ex and allocates their memory. 0 or ENOMEM. */
int qp_ex_fill(struct ibv_qp_ex *qp);

/* post.c. The caller of all these holds sq.lock. */

/*
 * Whether another send request may be posted. 0; EINVAL: not in this state; ENOMEM: the queue is
 * full.
 */
int send_admit(struct qp *qp);
/* How many slots of the send queue are taken. */
uint32_t send_outstanding(struct qp *qp);
/*
 * The slot for the next request. NULL: none is free. Without send_commit, the next call returns the
 * same slot.
 */
struct send_work *send_reserve(struct qp *qp);
/* Shows the request in the reserved slot to the engine. */
void send_commit(struct qp *qp, const struct send_work *w);
/* From now on the queue pair rings this lcore's doorbell. */
void qp_ring_at(struct qp *qp, uint32_t lcore);
/* Tells the lcore that there are new requests. */
void qp_ring_doorbell(struct qp *qp);

/* Copies `count` buffers into the slot as inline data. 0, or EINVAL: they are too long. */
int send_write_inline(struct qp *qp, struct send_work *w, const struct ibv_data_buf *buffers,
		      size_t count);
/* Copies eight octets into the slot as inline data, even if the queue pair has no inline data. */
void send_write_word(struct send_work *w, const void *octets);
/*
 * Copies the elements into the slot. 0, or EINVAL: they are too many, or longer than 2^31 octets.
 */
int send_write_elements(struct qp *qp, struct send_work *w, const struct ibv_sge *sge,
			size_t count);

/*
 * UD: writes the destination. 0, or EINVAL: the address handle belongs to another protection
 * domain.
 */
int send_write_datagram(const struct qp *qp, struct send_work *w, const struct ibv_ah *ah,
			uint32_t remote_qpn, uint32_t remote_qkey);
/*
 * Checks a complete request. 0, or EINVAL: a datagram has no address or is too long, or a length is
 * wrong.
 */
int send_check(const struct qp *qp, const struct send_work *w);

#endif
