/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues as receive side scaling uses them: their states, indirection tables, and the queue
 * pairs that spread frames over a table (ibv_create_rwq_ind_table(3), ibv_create_qp_ex(3)).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "control/commands/raw_control.h"

/* ibv_wq_state, ibv_wq_attr_mask */
enum {
	WQ_RESET = 0,
	WQ_READY = 1,
	WQ_ERROR = 2,
	WQ_STATES,
	WQ_ATTR_STATE = 1,
	WQ_ATTR_CURRENT = 2,
	WQ_ATTR_FLAGS = 4,
	WQ_ATTRS = 7,
	WQ_FLAG_STRIP = 1, /* ibv_wq_flags */
};

struct wq_change {
	struct engine_qp *wq;
	const struct request_modify_wq *request;
	uint32_t state; /* after the change */
	int error;
	const char *why;
	bool copies; /* RESET: they were under way */
};

static uint32_t wq_state(const struct engine_qp *q)
{
	switch (qp_state(q->core)) {
	case QP_STATE_RESET:
		return WQ_RESET;
	case QP_STATE_ERR:
		return WQ_ERROR;
	default:
		return WQ_READY;
	}
}

static int step(struct engine_qp *q, enum qp_state to, uint32_t mask, nanotime now)
{
	struct qp_attributes a = { .state = to, .port_num = 1 };

	return qp_modify(q->core, &a, QP_ATTR_STATE | mask, NULL);
}

static int wq_enter(struct engine_qp *q, uint32_t state, nanotime now)
{
	int error;

	q->error_asked = state == WQ_ERROR;
	switch (state) {
	case WQ_RESET:
		return step(q, QP_STATE_RESET, 0, now);
	case WQ_ERROR:
		return step(q, QP_STATE_ERR, 0, now);
	default:
		error = step(q, QP_STATE_INIT, QP_ATTR_PORT, now);
		return error != 0 ? error : step(q, QP_STATE_RTR, 0, now);
	}
}

static void change_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct wq_change *c = arg;
	const struct request_modify_wq *r = c->request;
	uint32_t from = wq_state(c->wq), to = r->mask & WQ_ATTR_STATE ? r->state : from;

	c->error = EINVAL;
	c->why = "the work queue is not in the given current state";
	if ((r->mask & WQ_ATTR_CURRENT) && r->current_state != from)
		return;
	c->why = "a work queue in the error state must be reset first";
	if (from == WQ_ERROR && to == WQ_READY)
		return;
	c->why = "the work queue cannot change to that state";
	c->copies = to == WQ_RESET && qp_has_copies(c->wq);
	c->error = from != to ? wq_enter(c->wq, to, now) : 0;
	if (c->error != 0)
		return;
	if ((r->mask & WQ_ATTR_FLAGS) && (r->flags_mask & WQ_FLAG_STRIP))
		c->wq->raw_flags = (uint8_t)((c->wq->raw_flags & ~(uint32_t)RAW_STRIP_VLAN) |
					     (r->flags & WQ_FLAG_STRIP ? RAW_STRIP_VLAN : 0));
	lcore_qp_touch(l, c->wq, now);
	c->state = wq_state(c->wq);
}

static struct engine_qp *wq_find(const struct client *c, uint32_t handle)
{
	struct engine_qp *q = object_find(c, OBJECT_QP, handle);

	return q != NULL && (q->raw_flags & RAW_WQ) ? q : NULL;
}

int cmd_modify_wq(struct call *call)
{
	const struct request_modify_wq *r = (const struct request_modify_wq *)call->request;
	struct reply_modify_qp *reply = (struct reply_modify_qp *)&call->reply;
	struct wq_change c = { .wq = wq_find(call->client, r->wq), .request = r };

	if (c.wq == NULL)
		return call_fail(call, EINVAL, "no such work queue");
	if ((r->mask & ~(uint32_t)WQ_ATTRS) || ((r->mask & WQ_ATTR_STATE) && r->state >= WQ_STATES))
		return call_fail(call, EINVAL, "unknown attributes %#x or state %u", r->mask,
				 r->state);
	if ((r->mask & WQ_ATTR_FLAGS) && (r->flags_mask & ~(uint32_t)WQ_FLAG_STRIP))
		return call_fail(call, EOPNOTSUPP, "flags %#x are not supported", r->flags_mask);
	lcore_call(c.wq->lcore, change_on_lcore, &c);
	if (c.error != 0)
		return call_fail(call, c.error, "%s", c.why);
	reply->state = c.state;
	/* As with a queue pair, RESET gives the program its memory back. */
	return c.copies ? call_after_copies(call, NULL, NULL) : 0;
}

/* ---- tables ---- */

static int fill_table(struct call *call, const struct request_create_rwq_table *r,
		      struct rwq_table *t)
{
	t->entries = 1u << r->log_size;
	for (uint32_t i = 0; i < t->entries; i++) {
		t->wq[i] = wq_find(call->client, r->wq[i]);
		if (t->wq[i] == NULL || t->wq[i]->context != r->context)
			return call_fail(call, EINVAL, "entry %u: no such work queue", i);
	}
	return 0;
}

int cmd_create_rwq_table(struct call *call)
{
	const struct request_create_rwq_table *r =
		(const struct request_create_rwq_table *)call->request;
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	int error = raw_check_privilege(call);
	struct rwq_table *t;

	if (error != 0)
		return error;
	if (object_find(call->client, OBJECT_CONTEXT, r->context) == NULL)
		return call_fail(call, EINVAL, "no such context");
	if (r->log_size > 31 || 1u << r->log_size > LIMIT_RWQ_TABLE)
		return call_fail(call, EINVAL, "an indirection table has at most %u entries",
				 LIMIT_RWQ_TABLE);
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return ENOMEM;
	error = fill_table(call, r, t);
	if (error == 0)
		error = raw_object_enter(call, OBJECT_RWQ_TABLE, &t->o, r->context);
	if (error != 0) {
		free(t);
		return error;
	}
	for (uint32_t i = 0; i < t->entries; i++)
		t->wq[i]->raw_users++;
	reply->handle = t->o.handle;
	return 0;
}

void rwq_table_free(struct client *c, struct rwq_table *t)
{
	for (uint32_t i = 0; i < t->entries; i++)
		t->wq[i]->raw_users--;
	raw_object_leave(c, OBJECT_RWQ_TABLE, &t->o);
	free(t);
}

int cmd_destroy_rwq_table(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct rwq_table *t = object_find(call->client, OBJECT_RWQ_TABLE, r->handle);

	if (t == NULL)
		return call_fail(call, EINVAL, "no such indirection table");
	if (t->o.users != 0)
		return call_fail(call, EBUSY, "%u queue pairs use the indirection table",
				 t->o.users);
	rwq_table_free(call->client, t);
	return 0;
}

/* ---- queue pairs on a table ---- */

#define IPV4_FIELDS (RSS_SRC_IPV4 | RSS_DST_IPV4)
#define IPV6_FIELDS (RSS_SRC_IPV6 | RSS_DST_IPV6)
#define TCP_FIELDS  (RSS_SRC_PORT_TCP | RSS_DST_PORT_TCP)
#define UDP_FIELDS  (RSS_SRC_PORT_UDP | RSS_DST_PORT_UDP)

static int check_rss(struct call *call, const struct request_create_rss *r)
{
	const struct pd *p = object_find(call->client, OBJECT_PD, r->pd);
	const struct rwq_table *t = object_find(call->client, OBJECT_RWQ_TABLE, r->table);

	if (p == NULL || t == NULL || t->o.context != p->context)
		return call_fail(
			call, EINVAL,
			"no such protection domain, or no such indirection table in its context");
	if (r->fields & ~(uint32_t)RSS_FIELDS)
		return call_fail(call, EOPNOTSUPP, "hash fields %#x are not supported", r->fields);
	/* verbs.h at enum ibv_rx_hash_fields */
	if (((r->fields & IPV4_FIELDS) && (r->fields & IPV6_FIELDS)) ||
	    ((r->fields & TCP_FIELDS) && (r->fields & UDP_FIELDS)))
		return call_fail(
			call, EINVAL,
			"one queue pair cannot hash both IPv4 and IPv6, or both TCP and UDP");
	return 0;
}

int cmd_create_rss(struct call *call)
{
	const struct request_create_rss *r = (const struct request_create_rss *)call->request;
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	int error = raw_check_privilege(call);
	struct pd *p;
	struct rss *s;

	if (error == 0)
		error = check_rss(call, r);
	if (error != 0)
		return error;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return ENOMEM;
	p = object_find(call->client, OBJECT_PD, r->pd);
	s->pd = r->pd;
	s->table = object_find(call->client, OBJECT_RWQ_TABLE, r->table);
	s->fields = r->fields;
	s->mask = s->table->entries - 1;
	memcpy(s->key, r->key, sizeof(s->key));
	for (uint32_t i = 0; i < s->table->entries; i++)
		s->qpn[i] = s->table->wq[i]->qpn;
	error = raw_object_enter(call, OBJECT_RSS, &s->o, p->context);
	if (error != 0) {
		free(s);
		return error;
	}
	p->users++;
	s->table->o.users++;
	reply->handle = s->o.handle;
	return 0;
}

void rss_free(struct client *c, struct rss *s)
{
	struct pd *p = object_find(c, OBJECT_PD, s->pd);

	p->users--;
	s->table->o.users--;
	raw_object_leave(c, OBJECT_RSS, &s->o);
	free(s);
}

int cmd_destroy_rss(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct rss *s = object_find(call->client, OBJECT_RSS, r->handle);

	if (s == NULL)
		return call_fail(call, EINVAL, "no such queue pair");
	if (s->o.users != 0)
		return call_fail(call, EBUSY, "%u steering rules use the queue pair", s->o.users);
	/* Its last rule was removed before a grace period. */
	rss_free(call->client, s);
	return 0;
}
