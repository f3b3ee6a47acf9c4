/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/socket.h>

#include "base/reason.h"
#include "queue/cancel.h"
#include "verbs/queues/flush.h"

/* Whether a is before b, modulo 2^32. */
static bool is_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/*
 * The next request to flush. Unsignaled requests that had left the window succeeded and get no
 * completion. Requests still in the window or the ring are flushed, signaled or not.
 */
static bool next_of(struct work_queue *q, uint32_t retired, uint64_t *wr_id)
{
	bool found = false;

	queue_lock(&q->lock);
	if (q->posted - q->done > q->mask + 1)
		q->done = q->posted - (q->mask + 1);
	while (!found && q->done != q->posted) {
		uint32_t number = q->done++;

		found = !is_before(number, retired) || q->signaled[number & q->mask];
		*wr_id = q->wr_id[number & q->mask];
	}
	queue_unlock(&q->lock);
	return found;
}

static void fill(struct completion *c, struct qp *qp, uint64_t wr_id, enum completion_opcode opcode)
{
	memset(c, 0, sizeof(*c));
	c->wr_id = wr_id;
	c->status = STATUS_WR_FLUSH_ERR;
	c->opcode = opcode;
	c->vendor_err = REASON_ENGINE_GONE;
	c->qp_num = qp->ibv.qp_base.qp_num;
	c->qp_handle = qp->handle;
	qp_show_state(&qp->ibv.qp_base, IBV_QPS_ERR);
}

static bool next_of_qp(struct cq *cq, struct qp *qp, struct completion *c)
{
	struct ibv_cq *ibv = (struct ibv_cq *)cq;
	uint32_t retired = __atomic_load_n(&qp->page->retired, __ATOMIC_RELAXED);
	uint64_t wr_id;

	if (qp->init.send_cq == ibv && next_of(&qp->sq, retired, &wr_id)) {
		__atomic_store_n(&qp->sq.signaled_polled, qp->sq.signaled_polled + 1,
				 __ATOMIC_RELAXED);
		fill(c, qp, wr_id, COMPLETION_SEND);
		return true;
	}
	if (qp->init.recv_cq == ibv && next_of(&qp->rq, qp->rq.done, &wr_id)) {
		fill(c, qp, wr_id, COMPLETION_RECV);
		return true;
	}
	return false;
}

bool flush_next(struct cq *cq, struct completion *c)
{
	for (uint32_t i = 0; i < cq->qps.slots; i++) {
		struct qp *qp = cq->qps.slot[i].object;

		if (qp != NULL && next_of_qp(cq, qp, c))
			return true;
	}
	return false;
}

static bool has_work(const struct work_queue *q)
{
	return __atomic_load_n(&q->posted, __ATOMIC_RELAXED) != q->done;
}

/* The caller holds cq->lock. */
static bool is_pending(struct cq *cq)
{
	struct ibv_cq *ibv = (struct ibv_cq *)cq;
	bool pending;

	/*
	 * Only reads, because a thread that polls a single-threaded CQ takes no lock. A CQ without a
	 * ring is in the table already, but the thread that creates it has no answer yet.
	 */
	pending = cq->ring != NULL && (cq->backlog.count != 0 || cq_ring_unpolled(cq->ring) != 0);
	for (uint32_t i = 0; i < cq->qps.slots && !pending; i++) {
		struct qp *qp = cq->qps.slot[i].object;

		if (qp == NULL)
			continue;
		pending = (qp->init.send_cq == ibv && has_work(&qp->sq)) ||
			  (qp->init.recv_cq == ibv && has_work(&qp->rq));
	}
	return pending;
}

struct search {
	struct channel *channel;
	struct cq *found;
	bool again; /* another thread holds the lock of a CQ */
};

/*
 * Does not wait for a CQ's lock. A program that polls with ibv_start_poll(3) holds it, and may use
 * other objects meanwhile, which takes the lock of the table.
 */
static void find_pending(struct verbs_object *o, void *argument)
{
	struct cq *cq = container_of_type(o, struct cq, object);
	struct search *s = argument;

	if (s->found != NULL || cq->channel != s->channel || cq->told_gone)
		return;
	if (!queue_trylock(&cq->lock)) {
		s->again = true;
		return;
	}
	if (is_pending(cq)) {
		cq_page_disarm(cq->page);
		cq->told_gone = true;
		o->comp_delivered++;
		s->found = cq;
	}
	queue_unlock(&cq->lock);
}

struct cq *flush_wake_one(struct channel *ch)
{
	struct search s = { .channel = ch, .again = true };

	while (s.found == NULL && s.again) {
		s.again = false;
		verbs_objects_lock();
		verbs_objects_each(VERBS_OBJECT_CQ, find_pending, &s);
		verbs_objects_unlock();
		if (s.again)
			sched_yield();
	}
	return s.found;
}

void flush_armed(struct cq *cq)
{
	struct channel_message message = { .cookie = cq->object.id };
	bool pending = true;
	int idle_fd, cancel;

	/* Before the channel is silenced, its end of file wakes the program. */
	if (cq->channel == NULL)
		return;
	/* Not waited for: this thread itself may hold it (wake_after_poll). */
	if (queue_trylock(&cq->lock)) {
		pending = is_pending(cq);
		queue_unlock(&cq->lock);
	}
	if (!pending || !cq_page_disarm(cq->page))
		return;
	cancel = cancel_off();
	verbs_objects_lock();
	/*
	 * Acquire: pairs with the release in events.c. poll.c says more about the words of work
	 * queues.
	 */
	idle_fd = __atomic_load_n(&cq->channel->idle_fd, __ATOMIC_ACQUIRE);
	cq->told_gone = idle_fd >= 0 && send(idle_fd, &message, sizeof(message),
					     MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(message);
	verbs_objects_unlock();
	if (!cq->told_gone) /* the channel has no room: the next post tries again */
		__atomic_store_n(&cq->page->armed, CQ_ARMED_NEXT, __ATOMIC_SEQ_CST);
	cancel_restore(cancel);
}
