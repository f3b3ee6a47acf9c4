/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Destruction of a queue pair, after what was posted before.
 *
 * Atomics: `async_events` counts what lcores sent and is read after the queue pair was detached.
 */
#include <errno.h>

#include "control/binds.h"
#include "control/control.h"
#include "control/ending/settle.h"
#include "lcore/window.h"
#include "lcore/xrc.h"

struct farewell {
	struct engine_qp *qp;
	struct call *call; /* its `leave` says how long it may take */
	bool over;
	bool copies; /* some are under way when it is detached */
};

/*
 * A program may post datagrams and destroy the queue pair at once, because they are not
 * acknowledged. A device would have sent them by then. So they are sent first, unless the port or a
 * slow copy delays them for too long. In ERR the rings hold nothing that would be sent.
 */
static bool has_last_words(struct lcore *l, struct engine_qp *q, nanotime now)
{
	qp_drain_rings(l, q, now);
	qp_settled(l, q, now);
	return q->is_ready || q->gather_pending || q->waiting > 0 ||
	       (q->drains != NULL && qp_state(q->core) != QP_STATE_ERR);
}

static bool is_leaving(struct lcore *l, struct farewell *f, nanotime now)
{
	if (f->call->leave.turns == 0 || !has_last_words(l, f->qp, now))
		return false;
	f->call->leave.waits = !lcore_let_leave(l, f->qp->client, now);
	f->call->leave.turns -= !f->call->leave.waits;
	return !f->call->leave.waits || now < f->call->leave.until;
}

static void detach(struct lcore *l, void *arg, nanotime now)
{
	struct farewell *f = arg;
	struct engine_qp *q = f->qp;

	if (is_leaving(l, f, now))
		return;
	f->over = true;
	f->copies = qp_has_copies(q);
	/*
	 * Here, so that no doorbell finds the queue pair between the loss of its handle and its
	 * detachment.
	 */
	handle_withdraw(&q->client->objects->table[OBJECT_QP], q->handle);
	lcore_qp_detach(l, q, now);
}

/* It is looked for each time: while the lock is free, other threads of a program have commands. */
static int destroy_when_left(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_destroy *reply = (struct reply_destroy *)&call->reply;
	struct engine_qp *q = object_find(call->client, OBJECT_QP, r->handle);
	struct farewell f = { .qp = q, .call = call };
	nanotime begin = clock_now();

	if (q == NULL)
		return call_fail(call, EINVAL, "no such queue pair");
	if (q->raw_users != 0)
		return call_fail(call, EBUSY, "%u steering rules or tables use the queue pair",
				 q->raw_users);
	if (q->groups > 0)
		return call_fail(call, EBUSY, "the queue pair is in %u multicast groups",
				 q->groups);
	call->leave.waits = false;
	for (uint32_t i = 0; i < LIMIT_TURNS_AT_ONCE && !f.over && !call->leave.waits; i++)
		lcore_call(q->lcore, detach, &f);
	if (!f.over)
		account_waited(&call->client->objects->account, begin, clock_now());
	if (!f.over)
		return call_after_leaving(call, destroy_when_left);
	operations_finish(call->engine); /* the queue pair's own bind may be among them */
	windows_leave(q);
	/* Another lcore may be handing a frame over to it. */
	if (call->engine->lcores > 1)
		engine_grace_period(call->engine);
	reply->events = __atomic_load_n(&q->async_events, __ATOMIC_RELAXED);
	qp_free(call->client, q);
	/*
	 * Copies may still touch the program's memory, so they are over before the program has the
	 * reply.
	 */
	return f.copies ? call_after_copies(call, NULL, NULL) : 0;
}

int cmd_destroy_qp(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;

	if (r->handle & TARGET_HANDLE)
		return target_destroy(call, r->handle);
	call_begin_leaving(call, LIMIT_LAST_TURNS);
	return destroy_when_left(call);
}
