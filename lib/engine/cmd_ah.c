/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles: an address vector with the envelope that follows from it. Whoever creates one
 * waits until its next hop is known (QUERY_AH); the neighbour agent keeps it right after that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/control.h"
#include "engine/moving.h"

int path_check(struct call *call, struct qp_path *path)
{
	const struct engine *e = call->engine;

	if (!path->is_global)
		return call_fail(call, EINVAL, "ah_attr.is_global is 0: RoCE needs a GRH");
	if (path->sgid_index >= LIMIT_GIDS || gid_is_zero(&e->gid[path->sgid_index].gid))
		return call_fail(call, EINVAL, "sgid_index %u: this GID entry is empty",
				 path->sgid_index);
	path->sgid = e->gid[path->sgid_index].gid;
	if (gid_is_zero(&path->dgid))
		return call_fail(call, EINVAL, "dgid is all zero");
	if (gid_is_ipv4(&path->sgid) != gid_is_ipv4(&path->dgid))
		return call_fail(call, EINVAL, "sgid_index %u and dgid: one is IPv4, one IPv6",
				 path->sgid_index);
	return 0;
}

static int check_ah(struct call *call, struct qp_path *path)
{
	if (path->port_num != 1)
		return call_fail(call, EINVAL, "there is no port %u", path->port_num);
	return path_check(call, path);
}

static uint32_t state_of(enum flow_state s)
{
	if (s == FLOW_NONE)
		return AH_RESOLVING;
	return s == FLOW_UNREACHABLE ? AH_UNREACHABLE : AH_RESOLVED;
}

/* The next hop, and the envelope towards it. */
static void find_way(struct engine *e, struct engine_ah *ah, struct mac *mac)
{
	memset(mac, 0, sizeof(*mac));
	ah->flow_state = (uint8_t)flow_resolve(e, &ah->path.dgid, mac);
	if (ah->flow_state == FLOW_LOOP)
		*mac = e->mac;
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

struct engine_ah *ah_renew(struct engine *e, const struct engine_ah *ah)
{
	struct engine_ah *fresh = malloc(sizeof(*fresh));
	struct mac mac;

	if (fresh == NULL)
		return NULL;
	*fresh = *ah;
	find_way(e, fresh, &mac);
	if (fresh->flow_state != ah->flow_state ||
	    memcmp(fresh->flow.header, ah->flow.header, sizeof(ah->flow.header)) != 0)
		return fresh;
	free(fresh);
	return NULL;
}

static int ah_build(struct call *call, const struct request_create_ah *r, struct engine_ah *ah)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_AH];
	struct mac mac;

	if (call->engine->ah_count >= LIMIT_AHS)
		return call_fail(call, ENOMEM, "the engine has %u address handles, all it can",
				 LIMIT_AHS);
	ah->handle = handle_reserve(t);
	if (ah->handle == 0)
		return call_fail(call, ENOMEM, "a program may have %u address handles", t->limit);
	ah->client = call->client;
	ah->pd_handle = r->pd;
	ah->port_by_qpns = (ah->path.flow_label & 0xfffff) == 0;
	ah->is_multicast = gid_is_multicast(&ah->path.dgid);
	find_way(call->engine, ah, &mac);
	return 0;
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
	call->engine->ah_count++;
	LIST_INSERT_HEAD(&call->engine->ahs, ah, engine_link);
	handle_publish(&call->client->objects->table[OBJECT_AH], ah->handle, ah);
	describe(call->engine, ah, (struct reply_ah *)&call->reply);
	return 0;
}

int cmd_query_ah(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	const struct engine_ah *ah = object_find(call->client, OBJECT_AH, r->handle);

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
	state = flow_resolve(call->engine, &path.dgid, &mac);
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
}

void ah_free(struct client *c, struct engine_ah *ah)
{
	struct pd *p = object_find(c, OBJECT_PD, ah->pd_handle);

	p->users--;
	c->engine->ah_count--;
	handle_free(&c->objects->table[OBJECT_AH], ah->handle);
	free(ah);
}

/* ---- requests that a handle leaves behind ---- */

#define SENDING_TURNS 1024u /* of an lcore, at least, */
#define SENDING_TIME  (10 * TIME_MS) /* and as long: what a port or mover holds up longer is lost */

/* What a client had posted on an lcore when it destroyed a handle. */
struct posted {
	const struct client *client;
	uint32_t serial;
	bool left;
};

/* Whether the queue pair has still to send what was in its ring when this was asked first. */
static bool posted_left(struct engine_qp *q, uint32_t serial)
{
	uint32_t n;

	if (q->posted_serial != serial) {
		n = ring_readable(&q->sq);
		q->posted_serial = serial;
		q->posted_end = qp_retired(q->core) + qp_capabilities(q->core)->max_send_wr +
				(n != RING_BROKEN ? n : 0);
	}
	return (int32_t)(q->posted_end - qp_retired(q->core)) > 0;
}

static void look_at(struct engine_qp *q, void *arg)
{
	struct posted *p = arg;

	if (q->client == p->client && q->type == QP_TYPE_UD)
		p->left |= posted_left(q, p->serial);
}

static void send_some(struct lcore *l, void *arg, nanotime now)
{
	struct posted *p = arg;
	struct engine_qp *q;

	p->left = doorbells_poll(l, now) >= LIMIT_BURST; /* there may be more of them */
	TAILQ_FOREACH(q, &l->ready, ready_link)
	look_at(q, p);
	moving_each_sender(l, look_at, p);
	if (p->left)
		lcore_let_leave(l, now);
}

/*
 * A request names its handle, and what was posted before the handle goes needs it still. Elsewhere
 * the request has a copy of it: programs post, ask for no completion, destroy the handle and end.
 */
static void send_posted(struct engine *e, const struct client *c)
{
	for (uint32_t i = 0; i < e->lcores; i++) {
		struct posted p = { .client = c, .serial = ++e->posted_serial };
		nanotime begin = clock_now();
		uint32_t turns = 0;

		do
			lcore_call(&e->lcore[i], send_some, &p);
		while (p.left && (++turns < SENDING_TURNS || clock_now() - begin < SENDING_TIME));
	}
}

int cmd_destroy_ah(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct engine_ah *ah = object_find(call->client, OBJECT_AH, r->handle);

	if (ah == NULL)
		return call_fail(call, EINVAL, "no such address handle");
	send_posted(call->engine, call->client);
	ah_withdraw(call->client, ah);
	engine_grace_period(call->engine);
	ah_free(call->client, ah);
	return 0;
}
