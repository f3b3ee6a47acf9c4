/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles: an address vector and the frame headers that follow from it. The program that
 * creates one waits until its next hop is known (QUERY_AH). After that the neighbour agent keeps
 * the headers up to date.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "control/ending/settle.h"
#include "control/network/destinations.h"
#include "lcore/moving/moving.h"

/* Whether its program has destroyed it: see below. */
enum ah_ended {
	AH_IN_USE, /* 0 */
	AH_WAITING,
	AH_GOING,
};

int path_check(struct call *call, struct qp_path *path)
{
	const struct engine *e = call->engine;

	if (!path->is_global)
		return call_fail(call, EINVAL, "ah_attr.is_global is 0, but RoCE needs a GRH");
	if (path->sgid_index >= LIMIT_GIDS || gid_is_zero(&e->gid[path->sgid_index].gid))
		return call_fail(call, EINVAL, "sgid_index %u is an empty GID entry",
				 path->sgid_index);
	path->sgid = e->gid[path->sgid_index].gid;
	if (gid_is_zero(&path->dgid))
		return call_fail(call, EINVAL, "dgid is all zero");
	if (gid_is_ipv4(&path->sgid) != gid_is_ipv4(&path->dgid))
		return call_fail(call, EINVAL, "sgid_index %u and dgid mix IPv4 and IPv6",
				 path->sgid_index);
	return 0;
}

static int check_ah(struct call *call, struct qp_path *path)
{
	if (path->port_num != 1)
		return call_fail(call, EINVAL, "no such port: %u", path->port_num);
	return path_check(call, path);
}

static uint32_t state_of(enum flow_state s)
{
	if (s == FLOW_NONE)
		return AH_RESOLVING;
	return s == FLOW_UNREACHABLE ? AH_UNREACHABLE : AH_RESOLVED;
}

/* The headers of frames to its next hop. */
static void make_envelope(struct engine *e, struct engine_ah *ah, enum flow_state state,
			  const struct mac *mac)
{
	ah->flow_state = (uint8_t)state;
	flow_make(e, &ah->path, 0, 0, mac, &ah->flow);
}

static void describe(const struct engine *e, const struct engine_ah *ah, struct reply_ah *reply)
{
	reply->handle = ah->handle;
	reply->state = state_of(ah->flow_state);
	if (reply->state == AH_RESOLVED)
		memcpy(reply->mac, ah->flow.header, sizeof(reply->mac));
	reply->vlan = e->vlan;
}

struct engine_ah *ah_renew(struct engine *e, const struct engine_ah *ah, enum flow_state state,
			   const struct mac *mac)
{
	struct engine_ah *fresh = malloc(sizeof(*fresh));

	if (fresh == NULL)
		return NULL;
	*fresh = *ah;
	make_envelope(e, fresh, state, mac);
	return fresh;
}

static int ah_build(struct call *call, const struct request_create_ah *r, struct engine_ah *ah)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_AH];
	enum flow_state state;
	struct mac mac;
	int error;

	ah->handle = handle_reserve(t);
	if (ah->handle == 0)
		return call_no_handle(call, OBJECT_AH);
	ah->client = call->client;
	ah->pd_handle = r->pd;
	ah->port_by_qpns = (ah->path.flow_label & 0xfffff) == 0;
	ah->is_multicast = gid_is_multicast(&ah->path.dgid);
	error = destination_find_way(call->engine, &ah->path, &state, &mac);
	if (error == 0)
		make_envelope(call->engine, ah, state, &mac);
	else
		handle_free(t, ah->handle);
	return error;
}

int cmd_create_ah(struct call *call)
{
	const struct request_create_ah *r = (const struct request_create_ah *)call->request;
	struct pd *p = object_find(call->client, OBJECT_PD, r->pd);
	struct engine_ah *ah;
	int error;

	if (p == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	ah = calloc(1, sizeof(*ah));
	if (ah == NULL)
		return ENOMEM;
	ah->path = r->path;
	error = check_ah(call, &ah->path);
	if (error == 0)
		error = ah_build(call, r, ah);
	if (error != 0) {
		free(ah);
		return error;
	}
	ah->pd = p->number;
	ah->context = p->context;
	p->users++;
	LIST_INSERT_HEAD(&call->engine->ahs, ah, engine_link);
	destination_of_ah(call->engine, ah);
	handle_publish(&call->client->objects->table[OBJECT_AH], ah->handle, ah);
	describe(call->engine, ah, (struct reply_ah *)&call->reply);
	return 0;
}

static struct engine_ah *ah_of_handle(const struct client *c, uint32_t handle)
{
	struct engine_ah *ah = object_find(c, OBJECT_AH, handle);

	return ah != NULL && ah->ended == AH_IN_USE ? ah : NULL;
}

int cmd_query_ah(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	const struct engine_ah *ah = ah_of_handle(call->client, r->handle);

	if (ah == NULL)
		return call_fail(call, EINVAL, "no such address handle");
	describe(call->engine, ah, (struct reply_ah *)&call->reply);
	return 0;
}

int cmd_resolve_path(struct call *call)
{
	const struct request_path *r = (const struct request_path *)call->request;
	struct reply_ah *reply = (struct reply_ah *)&call->reply;
	struct qp_path path = r->path;
	enum flow_state state;
	struct mac mac;
	int error = check_ah(call, &path);

	if (error != 0)
		return error;
	memset(&mac, 0, sizeof(mac));
	state = flow_resolve(call->engine, &path.sgid, &path.dgid, &mac);
	if (state == FLOW_LOOP)
		mac = call->engine->mac;
	reply->state = state_of(state);
	memcpy(reply->mac, mac.octet, sizeof(reply->mac));
	reply->vlan = call->engine->vlan;
	return 0;
}

void ah_withdraw(struct client *c, struct engine_ah *ah)
{
	handle_withdraw(&c->objects->table[OBJECT_AH], ah->handle);
	LIST_REMOVE(ah, engine_link);
	destination_leave_ah(ah);
}

/* A handle keeps its protection domain in use until its program destroys it. */
static void leave_domain(struct client *c, const struct engine_ah *ah)
{
	struct pd *p = object_find(c, OBJECT_PD, ah->pd_handle);

	p->users--;
}

void ah_free(struct client *c, struct engine_ah *ah)
{
	if (ah->ended == AH_IN_USE)
		leave_domain(c, ah);
	handle_free(&c->objects->table[OBJECT_AH], ah->handle);
	free(ah);
}

/*
 * Requests that still need a destroyed handle.
 *
 * A request names its handle, so requests that were posted before need the handle until they are
 * sent. Other devices copy the handle into the request, and programs rely on it: they post, ask for
 * no completion, destroy the handle and end. So DESTROY_AH sends what can be sent before it is
 * answered. For what cannot (a rate limit, SQD, a slow port or mover) the lcores keep the handle,
 * invisibly:
 *
 *	AH_IN_USE -- DESTROY_AH --> AH_WAITING -- none of the client's is going --> AH_GOING --> gone
 *
 * Handles in AH_GOING wait for what was posted when they entered that state, and are freed
 * together.
 */

enum posted_to {
	POSTED_NOW, /* requests that DESTROY_AH waits for */
	POSTED_GOING, /* requests that handles in AH_GOING wait for */
};

/* The requests that a client had posted on an lcore when it destroyed a handle. */
struct posted {
	const struct client *client;
	enum posted_to to;
	uint32_t serial;
	bool left; /* some of it is unsent and on its way */
	bool held; /* some of it is unsent and held back */
	bool waits; /* another thread has to send it: lcore_let_leave */
};

/* Whether the queue pair has yet to send what was posted when this was called first. */
static bool posted_left(struct engine_qp *q, const struct posted *p)
{
	struct posted_mark *m = &q->posted[p->to];
	uint32_t n = q->sq.size == 0 ? 0 : ring_readable(&q->sq);
	uint32_t retired = qp_retired(q->core), end = qp_taken(q->core);

	end += n != RING_BROKEN ? n : 0;
	if (m->serial != p->serial)
		*m = (struct posted_mark){ p->serial, end };
	/* RESET discards what is in the ring: that is never sent. */
	return end != retired && (int32_t)(m->end - retired) > 0;
}

static void look_at(struct engine_qp *q, void *arg)
{
	struct posted *p = arg;

	if (q->client == p->client && q->type == QP_TYPE_UD)
		p->left |= posted_left(q, p);
}

static void look_at_all(struct lcore *l, struct posted *p)
{
	struct engine_qp *q;

	TAILQ_FOREACH(q, turns_of(&l->turns, p->client), ready_link)
	look_at(q, p);
	moving_each_sender(l, look_at, p);
	outlets_each_sender(l, look_at, p);
	LIST_FOREACH(q, &p->client->objects->holding, holding_link)
	p->held |= q->lcore == l && posted_left(q, p);
}

static void look(struct lcore *l, void *arg, nanotime now)
{
	look_at_all(l, arg);
}

static void send_some(struct lcore *l, void *arg, nanotime now)
{
	struct posted *p = arg;

	p->left = doorbells_poll(l, now) >= LIMIT_BURST; /* there may be more doorbells */
	p->held = false;
	look_at_all(l, p);
	p->waits = p->left && !lcore_let_leave(l, p->client, now);
}

/*
 * Gives an lcore some turns. True: it gets no more, and what has not left by now is sent later
 * (*any: there is some).
 */
static bool send_posted_on(struct lcore *l, struct call *call, bool *any)
{
	struct posted p = { .client = call->client, .serial = call->leave.serial };
	nanotime begin = clock_now();

	for (uint32_t i = 0; i < LIMIT_TURNS_AT_ONCE && (i == 0 || (p.left && !p.waits)); i++) {
		lcore_call(l, send_some, &p);
		call->leave.turns -= call->leave.turns > 0;
	}
	if (p.left)
		account_waited(&call->client->objects->account, begin, clock_now());
	*any |= p.left || p.held;
	call->leave.waits &= !p.left || p.waits;
	return !p.left || ((p.waits || call->leave.turns == 0) && clock_now() >= call->leave.until);
}

/* *any: something is unsent, or may be. False: it is worth another look. */
static bool send_posted(struct call *call, bool *any)
{
	bool over = true;

	call->leave.waits = true;
	for (uint32_t i = 0; i < call->engine->lcores; i++)
		over &= send_posted_on(&call->engine->lcore[i], call, any);
	return over;
}

/* Whether the requests that the AH_GOING handles wait for are unsent. */
static bool going_left(struct client *c)
{
	struct posted p = { .client = c, .to = POSTED_GOING, .serial = c->objects->ah_serial };

	for (uint32_t i = 0; i < c->engine->lcores; i++)
		lcore_call(&c->engine->lcore[i], look, &p);
	return p.left || p.held;
}

static void begin_going(struct client *c)
{
	c->objects->ah_serial = ++c->engine->posted_serial;
	going_left(c);
}

void ahs_let_go(struct client *c)
{
	const struct handle_table *t = &c->objects->table[OBJECT_AH];
	LIST_HEAD(, engine_ah) gone = LIST_HEAD_INITIALIZER(gone);
	bool more = false;
	struct engine_ah *ah;

	if (c->objects->ah_serial == 0 || going_left(c))
		return;
	for (uint32_t i = 1; i <= t->used; i++) {
		ah = t->slot[i];
		if (ah != NULL && ah->ended == AH_GOING) {
			ah_withdraw(c, ah);
			LIST_INSERT_HEAD(&gone, ah, engine_link);
		} else if (ah != NULL && ah->ended == AH_WAITING) {
			ah->ended = AH_GOING;
			more = true;
		}
	}
	engine_grace_period(c->engine);
	while ((ah = LIST_FIRST(&gone)) != NULL) {
		LIST_REMOVE(ah, engine_link);
		ah_free(c, ah);
	}
	c->objects->ah_serial = 0;
	if (more)
		begin_going(c);
}

static int destroy_when_left(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct client *c = call->client;
	struct engine_ah *ah = ah_of_handle(c, r->handle);
	bool any = false;

	if (ah == NULL)
		return call_fail(call, EINVAL, "no such address handle");
	if (!send_posted(call, &any))
		return call_after_leaving(call, destroy_when_left);
	if (any) {
		leave_domain(c, ah);
		ah->ended = c->objects->ah_serial != 0 ? AH_WAITING : AH_GOING;
		if (ah->ended == AH_GOING)
			begin_going(c);
		return 0;
	}
	ah_withdraw(c, ah);
	engine_grace_period(call->engine);
	ah_free(c, ah);
	return 0;
}

int cmd_destroy_ah(struct call *call)
{
	call_begin_leaving(call, LIMIT_SENDING_TURNS);
	call->leave.serial = ++call->engine->posted_serial;
	return destroy_when_left(call);
}
