/* SPDX-License-Identifier: BSD-3-Clause */
/* Delivers completions, completion events and asynchronous events to programs. */
#include <errno.h>
#include <sys/socket.h>

#include <rte_branch_prediction.h>

#include "base/bits.h"
#include "lcore/inside.h"
#include "lcore/srq.h"
#include "lcore/xrc.h"
#include "protocol/command.h"

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

/*
 * Delivers asynchronous events to a program. Its socket holds some hundreds of them, fewer than a program
 * may have objects, so an object remembers the events that found the socket full.
 */
struct teller {
	struct client *client;
	int fd;
	uint32_t object; /* struct async_message */
	uint64_t cookie;
	uint32_t *sent, *owed; /* atomic */
};

static struct teller teller_of_cq(struct engine_cq *cq)
{
	return (struct teller){ cq->client, cq->async_fd,      2,
				cq->cookie, &cq->async_events, &cq->async_owed };
}

static struct teller teller_of_qp(struct engine_qp *q)
{
	return (struct teller){ q->client, q->async_fd,	     q->raw_flags & RAW_WQ ? 4 : 1,
				q->cookie, &q->async_events, &q->async_owed };
}

static struct teller teller_of_target(struct target *t)
{
	return (struct teller){ t->client, t->async_fd,	     1,
				t->cookie, &t->async_events, &t->async_owed };
}

static struct teller teller_of_srq(struct engine_srq *s)
{
	return (struct teller){ s->client, s->async_fd,	     3,
				s->cookie, &s->async_events, &s->async_owed };
}

/* The control thread tries again later. Later events of the object wait behind the owed ones. */
static void owe(const struct teller *t, uint32_t event)
{
	__atomic_fetch_or(t->owed, 1u << event, __ATOMIC_RELAXED);
	/* Release: a reader of this flag sees what is owed. */
	__atomic_store_n(&t->client->async_owed, 1, __ATOMIC_RELEASE);
}

/* False: the socket was full. */
static bool tell(const struct teller *t, uint32_t event)
{
	struct async_message m = { .event = event, .object = t->object, .cookie = t->cookie };

	if (t->fd < 0)
		return true;
	if (__atomic_load_n(t->owed, __ATOMIC_RELAXED) == 0) {
		if (send(t->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(m))
			__atomic_fetch_add(t->sent, 1, __ATOMIC_RELAXED);
		else if (errno == EAGAIN || errno == ENOBUFS)
			owe(t, event);
		else
			return true; /* nobody listens */
	} else {
		owe(t, event);
	}
	return __atomic_load_n(t->owed, __ATOMIC_RELAXED) == 0;
}

/* A full socket is tried once a round, not once for each object. */
static void tell_owed(struct teller t, struct owed_round *round)
{
	uint32_t owed = __atomic_load_n(t.owed, __ATOMIC_RELAXED);

	if (owed == 0)
		return;
	if (t.fd == round->full_fd) {
		__atomic_store_n(&t.client->async_owed, 1, __ATOMIC_RELEASE);
		return;
	}
	owed = __atomic_exchange_n(t.owed, 0, __ATOMIC_RELAXED);
	for (uint32_t event = 0; owed >> event != 0; event++) {
		if ((owed >> event & 1) == 0)
			continue;
		if (tell(&t, event))
			round->told = true;
		else
			round->full_fd = t.fd;
	}
}

void cq_tell_owed(struct engine_cq *cq, struct owed_round *round)
{
	tell_owed(teller_of_cq(cq), round);
}

void qp_tell_owed(struct engine_qp *q, struct owed_round *round)
{
	tell_owed(teller_of_qp(q), round);
}

void target_tell_owed(struct target *t, struct owed_round *round)
{
	tell_owed(teller_of_target(t), round);
}

void srq_tell_owed(struct engine_srq *s, struct owed_round *round)
{
	tell_owed(teller_of_srq(s), round);
}

bool cq_send_event(struct engine_cq *cq)
{
	struct channel_message m = { .cookie = cq->cookie };

	/*
	 * Before the event leaves: after that the program may arm the CQ again, and another thread
	 * may owe it the next event.
	 */
	__atomic_store_n(&cq->event_owed, 0, __ATOMIC_RELAXED);
	if (send(cq->channel->fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) ==
	    (ssize_t)sizeof(m)) {
		__atomic_fetch_add(&cq->events, 1, __ATOMIC_RELAXED);
		return true;
	}
	/* A full socket: the control thread tries again. Anything else: nobody listens. */
	if (errno == EAGAIN || errno == ENOBUFS)
		__atomic_store_n(&cq->event_owed, 1, __ATOMIC_RELEASE);
	return false;
}

static void cq_overrun(struct lcore *l, struct engine_cq *cq)
{
	struct teller t = teller_of_cq(cq);

	count_reason(l, REASON_CQ_OVERRUN);
	if (__atomic_exchange_n(&cq->overrun, 1, __ATOMIC_RELAXED) != 0)
		return;
	__atomic_store_n(&cq_rings_now(&cq->rings)->page->overrun, 1, __ATOMIC_RELAXED);
	tell(&t, EVENT_CQ_ERR);
}

static void cq_announce(struct lcore *l, struct engine_cq *cq, bool taken, nanotime now)
{
	if (is_moderated(&cq->moderation))
		moderate_completion(l, cq, taken, now);
	else if (taken)
		cq_send_event(cq);
}

static void count_error(struct lcore *l, const struct completion *c)
{
	bool of_receive = (c->opcode & COMPLETION_RECV) != 0;

	l->stats.ends[of_receive].failed++;
	l->stats.ends[of_receive].flushed += c->status == STATUS_WR_FLUSH_ERR;
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
			qp_fail(q->core, REASON_CQ_OVERRUN);
		return;
	}
	if (unlikely(c->status != STATUS_SUCCESS))
		count_error(l, c);
	if (cq->channel != NULL)
		cq_announce(l, cq, cq_ring_take_arming(ring, c->solicited), now);
}

/* Every program with a handle of an XRC target gets the event. */
static void raise_one(struct engine_qp *q, uint32_t event)
{
	struct teller to = teller_of_qp(q);
	struct target *t;

	if (q->type != QP_TYPE_XRC_RECV) {
		tell(&to, event);
		return;
	}
	LIST_FOREACH(t, &q->holders, link)
	{
		to = teller_of_target(t);
		tell(&to, event);
	}
}

/* A work queue has one event (IBV_EVENT_WQ_FATAL), whatever the cause. */
static void wq_raise(struct engine_qp *q, uint32_t events)
{
	struct teller to = teller_of_qp(q);

	if ((events & QP_EVENT_ENTERED_ERR) != 0 && !q->error_asked)
		tell(&to, EVENT_WQ_FATAL);
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
	struct teller to = teller_of_srq(s);

	tell(&to, event);
}
