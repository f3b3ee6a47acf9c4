/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "queue/ring_client.h"
#include "verbs/queues/cq.h"
#include "verbs/queues/flush.h"

/*
 * Atomics: each word of a work queue has one writer at a time, under the lock of its queue or CQ.
 * Others read the word without that lock. They only need a whole number, which may be a moment old:
 * relaxed. But a thread that takes a completion sees that its request was posted: the rings order
 * it.
 */

/* For a CQ that may miss completions: only the request's number says which requests are done. */
static void note_lossy(struct qp *qp, const struct completion *c)
{
	struct work_queue *q = c->opcode & IBV_WC_RECV ? &qp->rq : &qp->sq;

	if (work_is_after(q, c->work_index + 1, q->done))
		__atomic_store_n(&q->done, c->work_index + 1, __ATOMIC_RELAXED);
}

/* Notes that the queue's requests up to this one are done. */
static void note(struct cq *cq, const struct completion *c)
{
	struct qp *qp = cq->last;
	uint32_t done = c->work_index + 1;

	if (c->qp_handle != cq->last_handle) {
		qp = handle_map_get(&cq->qps, c->qp_handle);
		cq->last = qp;
		cq->last_handle = c->qp_handle;
	}
	if (qp == NULL)
		return; /* destroyed since */
	if ((c->opcode & IBV_WC_RECV) && c->from_srq)
		return; /* its slot in the SRQ became free when a message took it */
	if (cq->loses) {
		note_lossy(qp, c);
		return;
	}
	if (c->opcode & IBV_WC_RECV) {
		if (qp->rq.done != __atomic_load_n(&qp->rq.posted, __ATOMIC_RELAXED))
			__atomic_store_n(&qp->rq.done, qp->rq.done + 1, __ATOMIC_RELAXED);
		return;
	}
	/* Behind a failed request each one completes, also those that do not count as signaled. */
	if (c->from_srq != COMPLETION_UNSIGNALED)
		__atomic_store_n(&qp->sq.signaled_polled, qp->sq.signaled_polled + 1,
				 __ATOMIC_RELAXED);
	if (work_is_after(&qp->sq, done, qp->sq.done))
		__atomic_store_n(&qp->sq.done, done, __ATOMIC_RELAXED);
}

/* Takes a completion from a ring of an earlier size (ibv_resize_cq). */
static void take_backlog(struct cq *cq, struct completion *c)
{
	cq_backlog_pop(&cq->backlog, c);
	if (cq->backlog.count == 0) {
		free(cq->backlog.held);
		cq->backlog.held = NULL;
	}
}

static bool take_oldest(struct cq *cq, struct completion *c)
{
	const struct completion *oldest;

	if (__builtin_expect(cq->backlog.count != 0, 0)) {
		take_backlog(cq, c);
		return true;
	}
	oldest = ring_client_peek(cq->ring, sizeof(*oldest));
	if (oldest == NULL)
		return false;
	*c = *oldest;
	ring_client_release(cq->ring, 1);
	return true;
}

static inline bool take(struct cq *cq, struct completion *c)
{
	do {
		if (!take_oldest(cq, c))
			return false;
		/* skips those of a queue pair that was reset since */
	} while (__builtin_expect(c->qp_handle == CQ_FORGOTTEN, 0));
	note(cq, c);
	return true;
}

bool cq_take(struct cq *cq, struct completion *c)
{
	return take(cq, c);
}

void cq_forget_qp(struct cq *cq, const struct qp *qp)
{
	bool locked = cq_lock(cq);

	cq_forget(&cq->backlog, cq->ring, qp->handle);
	cq_unlock(cq, locked);
}

bool cq_take_when_empty(struct cq *cq, struct completion *c)
{
	struct carrier *carrier = cq->attachment->carrier;
	uint32_t empty = ++cq->empty_polls;

	if (carrier->embedded ||
	    (empty >= LIMIT_EMPTY_POLLS && empty % LIMIT_EMPTY_POLLS_EVERY == 0))
		carrier->ops->empty_poll(carrier);
	if (!carrier->ops->gone(carrier))
		return false;
	/* Completions that the engine wrote before its end come first. */
	return cq_take(cq, c) || flush_next(cq, c);
}

static int poll_locked(struct cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct completion c;
	int n = 0;

	cq_note_polled(cq);
	while (n < num_entries && take(cq, &c))
		memcpy(&wc[n++], &c, sizeof(*wc));
	if (n > 0) {
		cq->empty_polls = 0;
		return n;
	}
	while (n < num_entries && cq_take_when_empty(cq, &c))
		memcpy(&wc[n++], &c, sizeof(*wc));
	return n;
}

int verbs_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct cq *cq = cq_of(ibv);
	int n;

	if (cq->stale)
		return -EINVAL;
	queue_lock(&cq->lock);
	n = poll_locked(cq, num_entries, wc);
	queue_unlock(&cq->lock);
	if (n == 0 && num_entries > 0 && __atomic_load_n(&cq->page->overrun, __ATOMIC_RELAXED))
		return -EOVERFLOW; /* completions are missing, so the CQ cannot be used any more */
	return n;
}

/*
 * Sends the event at once if completions came between the program's last poll and its arming. UCX
 * polls, arms and waits, and relies on this: on ConnectX, the arming also says how far the program
 * has polled. Nothing is sent if the program has not polled since its last event. It will poll
 * after arming, as ibv_get_cq_event(3) shows, and would be woken without need.
 */
static void wake_after_poll(struct cq *cq, bool solicited)
{
	bool holds = true;

	if (cq->channel == NULL || !__atomic_load_n(&cq->polled, __ATOMIC_RELAXED))
		return;
	/*
	 * Not waited for: a program may arm between ibv_start_poll and ibv_end_poll, and holds it
	 * itself. An event too many does no harm.
	 */
	if (queue_trylock(&cq->lock)) {
		holds = cq_holds(&cq->backlog, cq->ring, solicited);
		queue_unlock(&cq->lock);
	}
	if (holds)
		attachment_command_handle(cq->attachment, COMMAND_WAKE_CQ, cq->ibv.handle);
}

int verbs_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct cq *cq = cq_of(ibv);

	if (cq->stale)
		return EINVAL;
	cq_ring_arm(cq->page, solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_NEXT);
	if (attachment_gone(cq->attachment))
		flush_armed(cq);
	else
		wake_after_poll(cq, solicited_only != 0);
	return 0;
}
