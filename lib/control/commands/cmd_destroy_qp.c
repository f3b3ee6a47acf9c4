/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a queue pair, behind what was posted before. */
#include <errno.h>
#include <unistd.h>

#include "control/binds.h"
#include "control/control.h"
#include "lcore/window.h"
#include "lcore/xrc.h"

/* Turns of the lcore in which a queue pair sends what was posted before its end. */
#define LAST_TURNS 128u

struct farewell {
	struct engine_qp *qp;
	uint32_t turns; /* left */
	bool waits; /* for who takes them, */
	nanotime until; /* and until then */
	bool over;
	bool copies; /* are under way at its end */
};

/*
 * A program may post, and destroy the queue pair with the datagrams that it waits for nobody to
 * confirm: from a device they would have left by now. So they leave first, unless the port or a
 * slow copy keeps them for too long.
 */
static bool has_last_words(struct lcore *l, struct engine_qp *q, nanotime now)
{
	qp_drain_rings(l, q, now);
	qp_settled(l, q, now);
	return q->is_ready || q->gather_pending;
}

static bool is_leaving(struct lcore *l, struct farewell *f, nanotime now)
{
	if (f->turns == 0 || !has_last_words(l, f->qp, now))
		return false;
	f->waits = !lcore_let_leave(l, f->qp->client, now);
	f->turns -= !f->waits;
	return !f->waits || now < f->until;
}

static void detach(struct lcore *l, void *arg, nanotime now)
{
	struct farewell *f = arg;
	struct engine_qp *q = f->qp;

	if (is_leaving(l, f, now))
		return;
	f->over = true;
	f->copies = qp_has_copies(q);
	/* Here, so that no doorbell finds it between its handle and its end. */
	handle_withdraw(&q->client->objects->table[OBJECT_QP], q->handle);
	lcore_qp_detach(l, q, now);
}

int cmd_destroy_qp(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_destroy *reply = (struct reply_destroy *)&call->reply;
	struct engine_qp *q = object_find(call->client, OBJECT_QP, r->handle);
	struct farewell f = { .qp = q, .turns = LAST_TURNS, .until = clock_now() + LEAVE_TIME };

	if (r->handle & TARGET_HANDLE)
		return target_destroy(call, r->handle);
	if (q == NULL)
		return call_fail(call, EINVAL, "no such queue pair");
	if (q->raw_users != 0)
		return call_fail(call, EBUSY, "%u steering rules or tables lead to it",
				 q->raw_users);
	if (q->groups > 0)
		return call_fail(call, EBUSY, "the queue pair is in %u multicast groups",
				 q->groups);
	for (;;) {
		lcore_call(q->lcore, detach, &f);
		if (f.over)
			break;
		if (f.waits)
			usleep(LEAVE_PAUSE);
	}
	operations_finish(call->engine); /* one of its own may be among them */
	windows_leave(q);
	/* Another lcore may be handing a frame over to it. */
	if (call->engine->lcores > 1)
		engine_grace_period(call->engine);
	reply->events = __atomic_load_n(&q->async_events, __ATOMIC_RELAXED);
	qp_free(call->client, q);
	/* Its copies know it no more; but the program has its memory back when it is answered. */
	return f.copies ? call_after_copies(call, NULL, NULL) : 0;
}
