/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw packets: work queues, receive side scaling (RSS), steering rules, counters. A work queue
 * contains a queue pair that only receives, here and in the engine. So posting, completions and the
 * end of an engine are the same for both.
 */
#ifndef VERBS_RAW_H
#define VERBS_RAW_H

#include "verbs/types.h"

struct wq {
	struct ibv_wq ibv;
	struct qp qp;
};

struct rwq_table {
	struct ibv_rwq_ind_table ibv;
};

struct counters {
	struct ibv_counters ibv;
	struct verbs_object object; /* its users are rules that count into it */
	uint32_t handle;
	struct queue_lock lock;
	uint32_t points;
	struct {
		uint32_t what; /* enum ibv_counter_description */
		uint32_t index;
	} point[LIMIT_COUNTER_POINTS];
};

struct steering {
	struct ibv_flow ibv;
	struct qp *qp;
	struct counters *counters; /* NULL: none */
};

static inline struct wq *wq_of(struct ibv_wq *wq)
{
	return (struct wq *)wq;
}

static inline struct counters *counters_of(struct ibv_counters *counters)
{
	return (struct counters *)counters;
}

/* wq.c: sets the functions of these verbs. */
void raw_fill_operations(struct verbs_context *v);
/* flow.c: sets the functions for rules and counters. */
void raw_fill_flow_operations(struct verbs_context *v);

/*
 * wq.c: create a queue pair on an indirection table (ibv_create_qp_ex(3)), NULL with errno; and
 * destroy it, 0 or an errno.
 */
struct ibv_qp *raw_create_rss_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);
int raw_destroy_rss_qp(struct qp *qp);

/*
 * raw.c: reads the attributes of ibv_create_qp_ex that are only for RAW_PACKET and UD. 0 or an
 * errno.
 */
struct raw_init {
	uint16_t flags; /* enum raw_flag */
	uint16_t max_tso_header;
};
int raw_read_init(const struct ibv_qp_init_attr_ex *init, struct raw_init *raw);
/*
 * raw.c: tso_write writes the arguments of a TSO request. When its elements are written, tso_finish
 * writes the header after them. The caller holds sq.lock. 0 or EINVAL.
 */
int tso_write(struct qp *qp, struct send_work *w, const void *header, size_t header_length,
	      uint16_t mss);
int tso_finish(struct qp *qp, struct send_work *w);

/* raw.c, for query.c: the device's capabilities for raw packets. */
void raw_fill_attributes(struct ibv_device_attr_ex *a);
unsigned int raw_device_flags(void);

#endif
