/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues: one program posts to them, and the lcores of all their queue pairs take
 * from them. An lcore takes a request out of the shared ring only when a packet needs one
 * (queue/srq_ring.h). A request that the packet did not use goes into a slot of `back`, where any
 * lcore finds it first. So no request waits with a queue pair that may not need it, and none is
 * lost with a queue pair that ends.
 *
 * Which thread may touch what: as in lcore.h. Lcores find an SRQ through its queue pairs or by its
 * number. It is freed a grace period after it was withdrawn from both.
 */
#ifndef LCORE_SRQ_H
#define LCORE_SRQ_H

#include "lcore/lcore.h"
#include "queue/srq_ring.h"

struct engine_xrcd;
struct tag_list;

/* ibv_srq_type */
enum srq_type {
	SRQ_TYPE_BASIC = 0,
	SRQ_TYPE_XRC = 1,
	SRQ_TYPE_TM = 2,
};

enum back_state {
	BACK_EMPTY,
	BACK_BUSY, /* being written by its lcore, or read by the lcore that took it */
	BACK_FULL,
};

/* A request that an lcore took and a packet did not use. */
struct back_slot {
	uint32_t state; /* atomic, enum back_state */
	struct recv_work *work; /* stride octets */
};

/* A ring in the client's arena (control), and what lcores know of it. */
struct srq_store {
	struct srq_ring ring; /* first */
	uint64_t offset;
	size_t octets;
	TAILQ_ENTRY(srq_store) link;
};

TAILQ_HEAD(srq_store_list, srq_store);

struct engine_srq {
	/* lcores */
	struct srq_ring *ring; /* atomic: the oldest that may hold requests */
	struct back_slot *back; /* two for each lcore */
	uint32_t in_back; /* atomic: how many of them are full */
	uint32_t limit; /* atomic: the armed limit; 0: none */
	uint32_t broken; /* atomic: its program wrote nonsense into it */
	uint32_t async_events; /* atomic */
	uint32_t async_owed; /* atomic: as of a CQ */
	struct srq_page *page;
	struct client *client;
	struct engine_cq *
		cq; /* XRC, tag matching: where receives complete; NULL: in their queue pairs' CQs */
	struct engine_xrcd *xrcd;
	struct tag_list *tags; /* tag matching: tag.h; else NULL */
	struct lcore *lcore; /* tag matching: of all its queue pairs; else NULL */
	uint32_t number; /* engine-wide, 24 bits: goes into XRCETHs and completions */
	uint32_t handle;
	uint32_t pd_number;
	uint32_t max_sge;
	uint32_t stride;
	int async_fd;
	uint64_t cookie;
	/* (control) */
	uint32_t type; /* enum srq_type */
	uint32_t context;
	uint32_t pd; /* handle */
	struct xrcd *xrcd_handle; /* the handle by which it is in xrcd */
	uint32_t max_wr;
	uint32_t users; /* queue pairs */
	uint64_t page_offset;
	uint32_t stores;
	struct srq_store_list store;
	void *memory; /* of `back` and its requests */
};

/* Posted requests that no message has taken, or UINT32_MAX if the program broke its ring. */
uint32_t srq_waiting(const struct engine_srq *s);

/*
 * The next request, or NULL. It lies in the lcore's private memory until the next call. Call
 * srq_used or srq_put_back before this lcore takes another one. Raises the event of an SRQ that
 * turns out to be broken.
 */
const struct recv_work *srq_take(struct lcore *l, struct engine_srq *s);
void srq_used(struct lcore *l, struct engine_srq *s);
void srq_put_back(struct lcore *l, struct engine_srq *s, const struct recv_work *work);
/*
 * Reports the event if fewer requests wait than the armed limit. Lcores, and the thread that arms
 * it.
 */
void srq_look_at_limit(struct engine_srq *s);

/* Its program wrote nonsense into one of its rings: nothing is taken from them any more. */
void srq_break(struct lcore *l, struct engine_srq *s);

/* notify.c: an asynchronous event of it; ibv_event_type. */
enum srq_event {
	EVENT_SRQ_ERR = 14,
	EVENT_SRQ_LIMIT_REACHED = 15,
};
void srq_raise(struct engine_srq *s, enum srq_event event);
/* ... as qp_tell_owed. */
void srq_tell_owed(struct engine_srq *s, struct owed_round *round);

static inline bool srq_is_broken(const struct engine_srq *s)
{
	return __atomic_load_n(&s->broken, __ATOMIC_RELAXED) != 0;
}

/* The SRQ of this number, or NULL. Lcores; valid until the next quiescent state. */
struct engine_srq *srq_find(const struct engine *e, uint32_t number);

#endif
