/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC target queue pairs, and the handles that processes have of them: see xrc.h.
 *
 * Atomics: `async_events` counts what lcores sent and is read when the handle is destroyed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "control/control.h"
#include "control/network/destinations.h"
#include "control/network/peers.h"
#include "lcore/srq.h"
#include "lcore/xrc.h"

struct engine_qp *qp_of_handle(const struct client *c, uint32_t handle)
{
	struct target *t;

	if ((handle & TARGET_HANDLE) == 0)
		return object_find(c, OBJECT_QP, handle);
	t = object_find(c, OBJECT_TARGET, handle & ~TARGET_HANDLE);
	return t != NULL ? t->qp : NULL;
}

/* ---- handles ---- */

static struct target *handle_create(struct call *call, struct xrcd *x, uint64_t cookie)
{
	struct handle_table *table = &call->client->objects->table[OBJECT_TARGET];
	const struct context *context = object_find(call->client, OBJECT_CONTEXT, x->context);
	struct target *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->handle = handle_reserve(table);
	if (t->handle == 0) {
		call_no_handle(call, OBJECT_TARGET);
		free(t);
		return NULL;
	}
	t->client = call->client;
	t->xrcd = x;
	t->context = x->context;
	t->async_fd = context->async_fd;
	t->cookie = cookie;
	return t;
}

static void handle_discard(struct target *t)
{
	handle_free(&t->client->objects->table[OBJECT_TARGET], t->handle);
	free(t);
}

static void hold_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct target *t = arg;

	LIST_INSERT_HEAD(&t->qp->holders, t, link);
}

static void attach_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct target *t = arg;

	hold_on_lcore(l, t, now);
	lcore_qp_attach(l, t->qp, now);
}

static void handle_enter(struct target *t, bool new_qp)
{
	t->xrcd->users++;
	lcore_call(t->qp->lcore, new_qp ? attach_on_lcore : hold_on_lcore, t);
	handle_publish(&t->client->objects->table[OBJECT_TARGET], t->handle, t);
}

/* ---- creation ---- */

static void target_caps(const struct engine_qp *q, struct qp_caps *caps)
{
	*caps = (struct qp_caps){
		.type = QP_TYPE_XRC_RECV,
		.qpn = q->qpn,
		.max_send_wr = 1, /* there is no send queue, but the core needs a slot */
		.max_recv_sge = LIMIT_SGE, /* enough for any SRQ */
		.max_rd_atomic = LIMIT_RD_ATOMIC,
		.tickets = LIMIT_TICKETS_NEW,
		.records_later = true,
		.port_mtu = q->client->engine->active_mtu,
		.has_srq = true,
	};
}

/* The core, and in an arena what other processes read. */
static int target_memory(struct call *call, struct engine_qp *q)
{
	struct qp_caps caps;
	void *page;
	int error;

	target_caps(q, &caps);
	error = qp_memory_make(call, q, &caps, sizeof(*q->page), &page);
	if (error != 0)
		return error;
	q->page = page;
	memset(q->page, 0, sizeof(*q->page));
	return 0;
}

static int target_build(struct call *call, struct engine_qp *q)
{
	struct engine *e = call->engine;

	q->lcore = &e->lcore[e->control->next_lcore++ % e->lcores];
	q->qpn = peers_reserve_number(e, q->lcore->index, q);
	if (q->qpn == 0)
		return call_fail(call, ENOMEM, "no queue pair number is free");
	return target_memory(call, q);
}

static void target_unbuild(struct engine_qp *q)
{
	if (q->qpn != 0)
		directory_remove(q->client->engine, q, clock_now());
	qp_memory_free(q);
	account_give(&q->client->objects->account, RESOURCE_QPS, 1);
	free(q);
}

static struct engine_qp *target_alloc(struct call *call, const struct xrcd *x)
{
	struct engine_qp *q = aligned_alloc(64, round_up(sizeof(*q), 64));

	if (q == NULL)
		return NULL;
	memset(q, 0, sizeof(*q));
	q->client = call->client;
	q->type = QP_TYPE_XRC_RECV;
	q->xrcd = x->domain;
	q->async_fd = -1;
	q->flow_state = FLOW_NONE;
	LIST_INIT(&q->holders);
	return q;
}

static void describe_target(const struct target *t, struct reply_create_qp *reply)
{
	reply->handle = t->handle | TARGET_HANDLE;
	reply->qpn = t->qp->qpn;
	reply->lcore = t->qp->lcore->index;
}

int target_create(struct call *call)
{
	const struct request_create_qp *r = (const struct request_create_qp *)call->request;
	struct xrcd *x = object_find(call->client, OBJECT_XRCD, r->xrcd);
	struct engine *e = call->engine;
	struct engine_qp *q;
	struct target *t;
	int error;

	if (x == NULL)
		return call_fail(call, EINVAL, "no such XRC domain");
	error = call_take(call, RESOURCE_QPS, 1);
	if (error != 0)
		return error;
	q = target_alloc(call, x);
	t = q != NULL ? handle_create(call, x, r->cookie) : NULL;
	if (t == NULL) {
		account_give(&call->client->objects->account, RESOURCE_QPS, 1);
		free(q);
		return ENOMEM;
	}
	error = target_build(call, q);
	if (error != 0) {
		target_unbuild(q);
		handle_discard(t);
		return error;
	}
	t->qp = q;
	e->qp_count++;
	LIST_INSERT_HEAD(&e->qps, q, engine_link);
	handle_enter(t, true);
	describe_target(t, (struct reply_create_qp *)&call->reply);
	return 0;
}

int cmd_open_qp(struct call *call)
{
	const struct request_open_qp *r = (const struct request_open_qp *)call->request;
	struct xrcd *x = object_find(call->client, OBJECT_XRCD, r->xrcd);
	struct engine_qp *q = directory_find(call->engine, r->qpn);
	struct target *t;

	if (x == NULL)
		return call_fail(call, EINVAL, "no such XRC domain");
	if (q == NULL || r->type != QP_TYPE_XRC_RECV || q->xrcd != x->domain)
		return call_fail(call, EINVAL, "no such XRC target queue pair in this domain");
	t = handle_create(call, x, r->cookie);
	if (t == NULL)
		return ENOMEM;
	t->qp = q;
	handle_enter(t, false);
	describe_target(t, (struct reply_create_qp *)&call->reply);
	return 0;
}

/* ---- the end ---- */

struct leave {
	struct target *target;
	struct client *heir; /* carries the queue pair from now on; NULL: there is none */
	bool copies; /* were under way when the last handle left */
};

static void leave_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct leave *leave = arg;
	struct engine_qp *q = leave->target->qp;
	struct target *other;

	LIST_REMOVE(leave->target, link);
	other = LIST_FIRST(&q->holders);
	if (other == NULL) {
		leave->copies = qp_has_copies(q);
		lcore_qp_detach(l, q, now);
		return;
	}
	leave->heir = q->client;
	if (q->client != leave->target->client)
		return;
	/* Another handle of the same process would do, but one of another process is as good. */
	leave->heir = other->client;
	q->client = other->client;
}

bool target_free(struct client *c, struct target *t)
{
	struct leave leave = { .target = t };
	struct engine_qp *q = t->qp;
	struct client *carrier = q->client;
	struct engine *e = c->engine;

	handle_withdraw(&c->objects->table[OBJECT_TARGET], t->handle);
	lcore_call(q->lcore, leave_on_lcore, &leave);
	t->xrcd->users--;
	if (leave.heir == NULL) {
		/* Another lcore may be handing a frame over to it. */
		if (e->lcores > 1)
			engine_grace_period(e);
		LIST_REMOVE(q, engine_link);
		peers_leave(q);
		destination_leave_qp(q);
		e->qp_count--;
		q->qpn = 0; /* the number was freed with the detachment */
		target_unbuild(q);
	} else if (leave.heir != carrier) {
		qp_memory_inherit(q, carrier, leave.heir);
		account_move(&carrier->objects->account, &leave.heir->objects->account,
			     RESOURCE_QPS, 1);
	}
	handle_discard(t);
	return leave.copies;
}

int target_destroy(struct call *call, uint32_t handle)
{
	struct reply_destroy *reply = (struct reply_destroy *)&call->reply;
	struct target *t = object_find(call->client, OBJECT_TARGET, handle & ~TARGET_HANDLE);

	if (t == NULL)
		return call_fail(call, EINVAL, "no such queue pair");
	reply->events = __atomic_load_n(&t->async_events, __ATOMIC_RELAXED);
	/* What its SRQs had taken may be memory of this program. */
	return target_free(call->client, t) ? call_after_copies(call, NULL, NULL) : 0;
}
