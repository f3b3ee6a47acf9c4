/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs hear: completions, completion events, asynchronous events. */
#include <errno.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "engine/engine.h"
#include "engine/srq.h"
#include "engine/xrc.h"

/* ibv_event_type */
enum {
	EVENT_CQ_ERR = 0,
	EVENT_QP_FATAL = 1,
	EVENT_QP_REQ_ERR = 2,
	EVENT_QP_ACCESS_ERR = 3,
	EVENT_COMM_EST = 4,
	EVENT_SQ_DRAINED = 5,
	EVENT_LAST_WQE_REACHED = 16,
	EVENT_WQ_FATAL = 19,
};

static const struct {
	uint32_t bit;
	uint32_t event;
} qp_events[] = {
	{ QP_EVENT_FATAL, EVENT_QP_FATAL },
	{ QP_EVENT_REQ_ERR, EVENT_QP_REQ_ERR },
	{ QP_EVENT_ACCESS_ERR, EVENT_QP_ACCESS_ERR },
	{ QP_EVENT_COMM_EST, EVENT_COMM_EST },
	{ QP_EVENT_SQ_DRAINED, EVENT_SQ_DRAINED },
	{ QP_EVENT_LAST_WQE_REACHED, EVENT_LAST_WQE_REACHED },
};

static bool async_send(int fd, uint32_t event, uint32_t object, uint64_t cookie)
{
	struct async_message m = { .event = event, .object = object, .cookie = cookie };

	return fd >= 0 &&
	       send(fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(m);
}

bool cq_send_event(struct engine_cq *cq)
{
	struct channel_message m = { .cookie = cq->cookie };

	if (send(cq->channel->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(m)) {
		/* A full socket: the control thread tries again. Anything else: nobody listens. */
		__atomic_store_n(&cq->event_owed, errno == EAGAIN || errno == ENOBUFS,
				 __ATOMIC_RELEASE);
		return false;
	}
	__atomic_fetch_add(&cq->events, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&cq->event_owed, 0, __ATOMIC_RELEASE);
	return true;
}

static void cq_overrun(struct lcore *l, struct engine_cq *cq)
{
	count_reason(l, REASON_CQ_OVERRUN);
	if (__atomic_exchange_n(&cq->overrun, 1, __ATOMIC_RELAXED) != 0)
		return;
	__atomic_store_n(&cq_rings_now(&cq->rings)->page->overrun, 1, __ATOMIC_RELAXED);
	if (async_send(cq->async_fd, EVENT_CQ_ERR, 2, cq->cookie))
		__atomic_fetch_add(&cq->async_events, 1, __ATOMIC_RELAXED);
}

static void cq_announce(struct lcore *l, struct engine_cq *cq, bool taken, nanotime now)
{
	if (is_moderated(&cq->moderation))
		moderate_completion(l, cq, taken, now);
	else if (taken)
		cq_send_event(cq);
}

void cq_complete(struct lcore *l, struct engine_qp *q, struct engine_cq *cq, struct completion *c,
		 nanotime now)
{
	struct cq_ring *ring = cq_rings_now(&cq->rings);

	c->timestamp = now;
	if (cq->overrun || !cq_ring_push(ring, c)) {
		if (cq->ignores_overrun) {
			count_reason(l, REASON_CQ_OVERRUN);
			return;
		}
		cq_overrun(l, cq);
		/* Each queue pair on it fails at its next completion (IBTA 10.10.2.3). */
		if (q != NULL)
			qp_fail(q->core, REASON_CQ_OVERRUN, now);
		return;
	}
	if (cq->channel != NULL)
		cq_announce(l, cq, cq_ring_take_arming(ring, c->solicited), now);
}

/* Everybody who has a handle of an XRC target hears of it. */
static void raise_one(struct engine_qp *q, uint32_t event)
{
	struct target *t;

	if (q->type != QP_TYPE_XRC_RECV) {
		if (async_send(q->async_fd, event, 1, q->cookie))
			__atomic_fetch_add(&q->async_events, 1, __ATOMIC_RELAXED);
		return;
	}
	LIST_FOREACH(t, &q->holders, link)
	if (async_send(t->async_fd, event, 1, t->cookie))
		__atomic_fetch_add(&t->async_events, 1, __ATOMIC_RELAXED);
}

/* A work queue has one event, for whatever took it to the error state. */
static void wq_raise(struct engine_qp *q, uint32_t events)
{
	if ((events & QP_EVENT_ENTERED_ERR) != 0 && !q->error_asked &&
	    async_send(q->async_fd, EVENT_WQ_FATAL, 4, q->cookie))
		__atomic_fetch_add(&q->async_events, 1, __ATOMIC_RELAXED);
}

void qp_raise(struct lcore *l, struct engine_qp *q, uint32_t events)
{
	if (q->raw_flags & RAW_WQ) {
		wq_raise(q, events);
		return;
	}
	if (events & QP_EVENT_COMM_EST)
		cm_rx_established(l->engine, q);
	for (uint32_t i = 0; i < ARRAY_SIZE(qp_events); i++)
		if (events & qp_events[i].bit)
			raise_one(q, qp_events[i].event);
}

void srq_raise(struct engine_srq *s, enum srq_event event)
{
	if (async_send(s->async_fd, event, 3, s->cookie))
		__atomic_fetch_add(&s->async_events, 1, __ATOMIC_RELAXED);
}
