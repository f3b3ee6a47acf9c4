/* SPDX-License-Identifier: BSD-3-Clause */
/* Steering rules and their counters (ibv_create_flow(3), ibv_create_counters(3)). */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "control/commands/raw_control.h"

/*
 * Lcores find the rules through one pointer. A table is never changed; it is replaced, and freed
 * after a grace period. Without rules there is no table, so that lcores need not search.
 */
static void widen_bell(struct engine *e, bool every_frame)
{
	if (e->port != NULL && e->port->ops->bell_widen != NULL)
		e->port->ops->bell_widen(e->port, every_frame);
}

static int publish(struct engine *e, bool may_fail)
{
	struct flow_table *old = e->flows, *new = NULL;
	struct engine_flow *f;

	if (e->flow_count > 0) {
		new = calloc(1, flow_table_bytes(e->flow_count));
		if (new == NULL && may_fail)
			return ENOMEM;
		LIST_FOREACH(f, &e->flow_list, link)
		if (new != NULL)
			flow_table_add(new, &f->rule);
	}
	/* Release: an lcore that sees the table sees its rules. */
	__atomic_store_n(&e->flows, new, __ATOMIC_RELEASE);
	if ((old == NULL) != (new == NULL))
		widen_bell(e, new != NULL);
	heard_update(e);
	engine_grace_period(e);
	free(old);
	return 0;
}

int flows_publish(struct engine *e)
{
	return publish(e, false);
}

static int check_rule(struct call *call, const struct request_create_flow *r)
{
	if (r->kind >= FLOW_KINDS)
		return call_fail(call, EINVAL, "unknown rule type %u", r->kind);
	if ((r->layers & ~(uint32_t)FLOW_LAYERS) || (r->actions & ~(uint32_t)FLOW_ACTIONS))
		return call_fail(call, EINVAL, "unknown layers %#x or actions %#x", r->layers,
				 r->actions);
	if (r->priority > UINT16_MAX)
		return call_fail(call, EINVAL, "priority %u exceeds %u", r->priority, UINT16_MAX);
	/* ibv_create_flow(3), note 4, and what would mean nothing for a default or sniffer rule. */
	if (r->kind != FLOW_NORMAL && (r->actions & (FLOW_DONT_TRAP | FLOW_DROP)))
		return call_fail(call, EINVAL, "only normal rules may drop frames or pass them on");
	if (r->kind != FLOW_NORMAL && r->layers != 0)
		return call_fail(call, EINVAL, "only normal rules may match fields of the frame");
	return 0;
}

static int check_target(struct call *call, const struct request_create_flow *r,
			struct engine_flow *f)
{
	f->qp = object_find(call->client, OBJECT_QP, r->qp);
	f->rss = object_find(call->client, OBJECT_RSS, r->rss);
	if ((r->qp != 0) == (r->rss != 0) || (r->qp != 0 && f->qp == NULL) ||
	    (r->rss != 0 && f->rss == NULL))
		return call_fail(call, EINVAL, "no such queue pair");
	if (f->qp != NULL && (!f->qp->raw || (f->qp->raw_flags & RAW_WQ)))
		return call_fail(call, EINVAL, "the queue pair is not of type RAW_PACKET");
	f->counters = object_find(call->client, OBJECT_COUNTERS, r->counters);
	if (r->counters != 0 &&
	    (f->counters == NULL ||
	     f->counters->o.context != (f->qp != NULL ? f->qp->context : f->rss->o.context)))
		return call_fail(call, EINVAL, "no such counters");
	return 0;
}

static void fill_rule(struct engine_flow *f, const struct request_create_flow *r)
{
	f->rule = (struct flow_rule){
		.kind = r->kind,
		.priority = r->priority,
		.layers = r->layers,
		.actions = r->actions,
		.tag = r->tag,
		.counters = f->counters != NULL ? f->counters->count : NULL,
		.target.qpn = f->qp != NULL ? f->qp->qpn : 0,
		.target.rss = f->rss,
		.value = r->value,
		.mask = r->mask,
	};
}

static void use_others(struct engine_flow *f, uint32_t by)
{
	if (f->qp != NULL)
		f->qp->raw_users += by;
	if (f->rss != NULL)
		f->rss->o.users += by;
	if (f->counters != NULL)
		f->counters->o.users += by;
}

static int enter(struct call *call, struct engine_flow *f)
{
	struct engine *e = call->engine;
	uint32_t context = f->qp != NULL ? f->qp->context : f->rss->o.context;
	int error = raw_object_enter(call, OBJECT_FLOW, &f->o, context);

	if (error != 0)
		return error;
	LIST_INSERT_HEAD(&e->flow_list, f, link);
	e->flow_count++;
	error = publish(e, true);
	if (error != 0) {
		LIST_REMOVE(f, link);
		e->flow_count--;
		raw_object_leave(call->client, OBJECT_FLOW, &f->o);
		return call_fail(call, error, "the engine has no memory for the rule");
	}
	use_others(f, 1);
	return 0;
}

int cmd_create_flow(struct call *call)
{
	const struct request_create_flow *r = (const struct request_create_flow *)call->request;
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	int error = raw_check_privilege(call);
	struct engine_flow *f;

	if (error == 0)
		error = check_rule(call, r);
	if (error != 0)
		return error;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return ENOMEM;
	error = check_target(call, r, f);
	if (error == 0) {
		fill_rule(f, r);
		error = enter(call, f);
	}
	if (error != 0) {
		free(f);
		return error;
	}
	reply->handle = f->o.handle;
	return 0;
}

void flow_free(struct client *c, struct engine_flow *f)
{
	use_others(f, UINT32_MAX);
	raw_object_leave(c, OBJECT_FLOW, &f->o);
	free(f);
}

int cmd_destroy_flow(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct engine_flow *f = object_find(call->client, OBJECT_FLOW, r->handle);
	struct engine *e = call->engine;

	if (f == NULL)
		return call_fail(call, EINVAL, "no such rule");
	LIST_REMOVE(f, link);
	e->flow_count--;
	if (publish(e, true) != 0) {
		LIST_INSERT_HEAD(&e->flow_list, f, link);
		e->flow_count++;
		return call_fail(call, ENOMEM, "the engine has no memory for the remaining rules");
	}
	flow_free(call->client, f);
	return 0;
}

/* ---- counters ---- */

int cmd_create_counters(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	struct engine_counters *k;
	int error;

	if (object_find(call->client, OBJECT_CONTEXT, r->handle) == NULL)
		return call_fail(call, EINVAL, "no such context");
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return ENOMEM;
	k->count = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*k->count));
	if (k->count == NULL) {
		free(k);
		return ENOMEM;
	}
	memset(k->count, 0, sizeof(*k->count));
	error = raw_object_enter(call, OBJECT_COUNTERS, &k->o, r->handle);
	if (error != 0) {
		free(k->count);
		free(k);
		return error;
	}
	reply->handle = k->o.handle;
	return 0;
}

/* The rule exists already: publishes a new table with its counters. */
int cmd_attach_counters(struct call *call)
{
	const struct request_attach_counters *r =
		(const struct request_attach_counters *)call->request;
	struct engine_counters *k = object_find(call->client, OBJECT_COUNTERS, r->counters);
	struct engine_flow *f = object_find(call->client, OBJECT_FLOW, r->flow);

	if (k == NULL || f == NULL || k->o.context != f->o.context)
		return call_fail(call, EINVAL, "no such rule, or no such counters in its context");
	if (f->counters == k)
		return 0;
	if (f->counters != NULL)
		return call_fail(call, ENOTSUP, "the rule already has counters");
	f->rule.counters = k->count;
	if (publish(call->engine, true) != 0) {
		f->rule.counters = NULL;
		return call_fail(call, ENOMEM, "the engine has no memory for the rules");
	}
	f->counters = k;
	k->o.users++;
	return 0;
}

int cmd_read_counters(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_counters *reply = (struct reply_counters *)&call->reply;
	const struct engine_counters *k = object_find(call->client, OBJECT_COUNTERS, r->handle);

	if (k == NULL)
		return call_fail(call, EINVAL, "no such counters");
	/* Relaxed: each lcore's numbers are right; together they are of nearly one instant. */
	for (uint32_t i = 0; i < call->engine->lcores; i++) {
		reply->packets += __atomic_load_n(&k->count->lcore[i].packets, __ATOMIC_RELAXED);
		reply->octets += __atomic_load_n(&k->count->lcore[i].octets, __ATOMIC_RELAXED);
	}
	return 0;
}

void counters_free(struct client *c, struct engine_counters *k)
{
	raw_object_leave(c, OBJECT_COUNTERS, &k->o);
	free(k->count);
	free(k);
}

int cmd_destroy_counters(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct engine_counters *k = object_find(call->client, OBJECT_COUNTERS, r->handle);

	if (k == NULL)
		return call_fail(call, EINVAL, "no such counters");
	if (k->o.users != 0)
		return call_fail(call, EBUSY, "%u rules use the counters", k->o.users);
	counters_free(call->client, k);
	return 0;
}
