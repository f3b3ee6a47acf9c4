/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of what programs have (protocol/command_list.h), as many entries as fit one message at a
 * time. A position in a list is a program's index and a handle.
 */
#include <string.h>

#include "base/bits.h"
#include "control/control.h"
#include "control/network/destinations.h"
#include "control/network/peers.h"
#include "lcore/paths.h"

/* The contents of a list: one kind of object of every program that the caller may see. */
struct list {
	enum object_kind kind;
	uint32_t room;
	uint32_t count;
	/* Takes the object over into entry `count`. */
	void (*take)(struct list *list, const struct client *c, const void *object);
	void *entries;
};

/* From this handle on. Returns the first handle that found no room, or 0. */
static uint32_t walk_client(struct list *list, const struct client *c, uint32_t handle)
{
	const struct handle_table *t = &c->objects->table[list->kind];

	for (handle = MAX_OF(handle, 1u); handle <= t->used; handle++) {
		if (t->slot[handle] == NULL)
			continue;
		if (list->count == list->room)
			return handle;
		list->take(list, c, t->slot[handle]);
		list->count++;
	}
	return 0;
}

/* Returns the position for the next request, 0: that was all. */
static uint64_t walk(const struct call *call, struct list *list)
{
	uint64_t from = ((const struct request_list *)call->request)->from;
	uint32_t handle = (uint32_t)from;

	for (uint64_t i = from >> 32; i < LIMIT_CLIENTS; i++, handle = 0) {
		const struct client *c = call->engine->client[i];

		if (c == NULL || c->dying || !call_sees(call, c))
			continue;
		handle = walk_client(list, c, handle);
		if (handle != 0)
			return i << 32 | handle;
	}
	return 0;
}

/* ---- queue pairs ---- */

/* The transport's state belongs to the lcore: it is read there, for many queue pairs at a time. */
struct qp_list {
	struct list list; /* first */
	const struct engine_qp *qp[LISTED_QPS];
};

static void take_qp(struct list *list, const struct client *c, const void *object)
{
	struct qp_list *l = (struct qp_list *)list;
	struct listed_qp *to = (struct listed_qp *)list->entries + list->count;
	const struct engine_qp *q = object;

	l->qp[list->count] = q;
	to->qpn = q->qpn;
	to->type = q->type;
	to->lcore = (uint8_t)q->lcore->index;
	to->pid = (uint32_t)c->objects->pid;
	to->uid = c->objects->uid;
	memcpy(to->program, c->objects->program, sizeof(to->program));
	if (q->has_peer)
		to->peer = qp_address_vector(q->core)->dgid;
}

static uint8_t way_of(uint8_t flow_state)
{
	static const uint8_t way[] = {
		[FLOW_NONE] = LISTED_NOWHERE,
		[FLOW_PORT] = LISTED_PORT,
		[FLOW_LOOP] = LISTED_HERE,
		[FLOW_UNREACHABLE] = LISTED_UNREACHABLE,
		[FLOW_BY_HANDLE] = LISTED_BY_REQUEST,
	};

	return way[flow_state];
}

static void read_on_lcore(struct lcore *lcore, void *arg, nanotime now)
{
	const struct qp_list *l = arg;
	struct listed_qp *to = l->list.entries;
	struct qp_attributes a;

	for (uint32_t i = 0; i < l->list.count; i++) {
		if (l->qp[i]->lcore != lcore)
			continue;
		qp_query(l->qp[i]->core, &a);
		to[i].state = (uint8_t)a.state;
		to[i].dest_qpn = a.dest_qpn;
		to[i].send_psn = a.sq_psn;
		to[i].receive_psn = a.rq_psn;
		to[i].way = way_of(l->qp[i]->flow_state);
		to[i].sent = l->qp[i]->sent;
		to[i].received = l->qp[i]->received;
		to[i].again = l->qp[i]->again;
	}
}

static bool has_some(const struct qp_list *l, const struct lcore *lcore)
{
	for (uint32_t i = 0; i < l->list.count; i++)
		if (l->qp[i]->lcore == lcore)
			return true;
	return false;
}

int cmd_qp_list(struct call *call)
{
	struct reply_qp_list *reply = (struct reply_qp_list *)&call->reply;
	struct engine *e = call->engine;
	struct qp_list l = { .list = { .kind = OBJECT_QP,
				       .room = LISTED_QPS,
				       .take = take_qp,
				       .entries = reply->qp } };

	reply->next = walk(call, &l.list);
	reply->count = l.list.count;
	for (uint32_t i = 0; i < e->lcores; i++)
		if (has_some(&l, &e->lcore[i]))
			lcore_call(&e->lcore[i], read_on_lcore, &l);
	return 0;
}

/* ---- regions ---- */

static uint32_t reach_of(const struct mr *m)
{
	uint32_t reach =
		m->implicit || (m->region->access & ACCESS_ON_DEMAND) != 0 ? LISTED_ON_DEMAND : 0;

	if (m->dm != NULL)
		return LISTED_DEVICE;
	for (uint32_t i = 0; i < m->region->pieces; i++)
		reach |= m->region->piece[i].direct != NULL ? LISTED_MAPPED : LISTED_PEER;
	return reach;
}

static void take_mr(struct list *list, const struct client *c, const void *object)
{
	struct listed_mr *to = (struct listed_mr *)list->entries + list->count;
	const struct mr *m = object;

	to->key = m->key;
	to->address = m->region->iova;
	to->length = m->region->length;
	to->access = m->region->access;
	to->reach = reach_of(m);
	to->pid = (uint32_t)c->objects->pid;
	to->uid = c->objects->uid;
	memcpy(to->program, c->objects->program, sizeof(to->program));
}

int cmd_mr_list(struct call *call)
{
	struct reply_mr_list *reply = (struct reply_mr_list *)&call->reply;
	struct list list = {
		.kind = OBJECT_MR, .room = LISTED_MRS, .take = take_mr, .entries = reply->mr
	};

	reply->next = walk(call, &list);
	reply->count = list.count;
	return 0;
}

/* ---- programs ---- */

static void take_program(const struct client *c, struct listed_program *to)
{
	const struct client_objects *o = c->objects;

	to->memory = o->account.has[RESOURCE_MEMORY];
	to->pid = (uint32_t)o->pid;
	to->uid = o->uid;
	to->contexts = o->table[OBJECT_CONTEXT].count;
	to->pds = o->table[OBJECT_PD].count;
	to->mrs = o->table[OBJECT_MR].count + o->table[OBJECT_MR_IMPORT].count;
	to->cqs = o->table[OBJECT_CQ].count;
	to->qps = o->table[OBJECT_QP].count + o->table[OBJECT_TARGET].count;
	to->srqs = o->table[OBJECT_SRQ].count;
	to->ahs = o->table[OBJECT_AH].count;
	to->ids = o->table[OBJECT_CM_ID].count;
	memcpy(to->program, o->program, sizeof(to->program));
}

/* Here a position is a program's index alone. */
int cmd_program_list(struct call *call)
{
	struct reply_program_list *reply = (struct reply_program_list *)&call->reply;
	uint64_t from = ((const struct request_list *)call->request)->from;

	for (uint64_t i = from; i < LIMIT_CLIENTS; i++) {
		const struct client *c = call->engine->client[i];

		if (c == NULL || c->dying || !call_sees(call, c))
			continue;
		if (reply->count == LISTED_PROGRAMS) {
			reply->next = i;
			return 0;
		}
		take_program(c, &reply->program[reply->count++]);
	}
	return 0;
}

/* ---- neighbours ---- */

int cmd_neighbour_list(struct call *call)
{
	struct reply_neighbour_list *reply = (struct reply_neighbour_list *)&call->reply;
	uint64_t from = ((const struct request_list *)call->request)->from;

	if (!call_sees_all(call) || call->engine->control->destinations == NULL)
		return 0;
	reply->next = destinations_list(call->engine->control->destinations, from, reply->neighbour,
					LISTED_NEIGHBOURS, &reply->count);
	return 0;
}

/* ---- paths ---- */

struct path_walk {
	struct reply_path_list *reply;
	uint32_t from, next; /* 0: this lcore has no more */
};

static void list_on_lcore(struct lcore *lcore, void *arg, nanotime now)
{
	struct path_walk *w = arg;

	w->next = paths_list(lcore, w->from, w->reply->path, LISTED_PATHS, &w->reply->count);
}

/* A position is an lcore and a path of it. */
int cmd_path_list(struct call *call)
{
	struct path_walk w = { .reply = (struct reply_path_list *)&call->reply };
	uint64_t from = ((const struct request_list *)call->request)->from;

	if (!call_sees_all(call))
		return 0;
	w.from = (uint32_t)from;
	for (uint64_t i = from >> 32; i < call->engine->lcores; i++, w.from = 0) {
		lcore_call(&call->engine->lcore[i], list_on_lcore, &w);
		if (w.next != 0) {
			w.reply->next = i << 32 | w.next;
			return 0;
		}
	}
	return 0;
}
