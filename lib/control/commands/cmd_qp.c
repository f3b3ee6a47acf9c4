/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: created here, attached to an lcore, changed and detached by messages to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "control/cm/cm_control.h"
#include "control/control.h"
#include "control/network/destinations.h"
#include "lcore/moving/moving.h"
#include "control/network/peers.h"
#include "control/network/placing.h"
#include "control/commands/raw_control.h"
#include "lcore/srq.h"
#include "control/commands/tag_control.h"
#include "lcore/xrc.h"

/* One row for each number: what the program requests, and the maximum. */
static int check_caps(struct call *call, const struct request_create_qp *r)
{
	const struct {
		const char *name;
		uint32_t value, limit;
	} row[] = {
		{ "max_send_wr", r->max_send_wr, LIMIT_QP_WR },
		{ "max_recv_wr", r->max_recv_wr, LIMIT_QP_WR },
		{ "max_send_sge", r->max_send_sge, LIMIT_SGE },
		{ "max_recv_sge", r->max_recv_sge, LIMIT_SGE },
		{ "max_inline_data", r->max_inline, LIMIT_INLINE },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(row); i++)
		if (row[i].value > row[i].limit)
			return call_fail(call, EINVAL, "%s %u exceeds %u", row[i].name,
					 row[i].value, row[i].limit);
	return 0;
}

/* XRC initiators do not receive. */
static bool has_receives(const struct request_create_qp *r)
{
	return r->type != QP_TYPE_XRC_SEND;
}

static int check_srq(struct call *call, const struct request_create_qp *r, const struct pd *p)
{
	const struct engine_srq *srq =
		object_of_context(call->client, OBJECT_SRQ, r->srq, p->context);

	if (r->srq == 0)
		return 0;
	if (srq == NULL || srq->type == SRQ_TYPE_XRC || !has_receives(r))
		return call_fail(call, EINVAL, "no such shared receive queue in this context");
	if (srq->type == SRQ_TYPE_TM && r->type != QP_TYPE_RC)
		return call_fail(call, EINVAL, "tag matching needs an RC queue pair");
	/*
	 * For a rendezvous the queue pair's own READ writes into the buffers of tag list elements.
	 */
	if (srq->type == SRQ_TYPE_TM && srq->pd_number != p->number)
		return call_fail(call, EINVAL,
				 "the tag matching SRQ is in another protection domain");
	return 0;
}

static int check_create_qp(struct call *call, const struct request_create_qp *r)
{
	const struct pd *p = object_find(call->client, OBJECT_PD, r->pd);
	const struct engine_cq *send_cq = object_find(call->client, OBJECT_CQ, r->send_cq);
	const struct engine_cq *recv_cq = object_find(call->client, OBJECT_CQ, r->recv_cq);
	int error;

	if (p == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	if (send_cq == NULL || send_cq->context != p->context ||
	    (has_receives(r) && (recv_cq == NULL || recv_cq->context != p->context)))
		return call_fail(call, EINVAL, "no such completion queue in this context");
	if (r->type != QP_TYPE_RC && r->type != QP_TYPE_UC && r->type != QP_TYPE_UD &&
	    r->type != QP_TYPE_XRC_SEND && r->type != QP_TYPE_RAW_PACKET)
		return call_fail(call, EOPNOTSUPP, "queue pairs of type %u are not supported",
				 r->type);
	error = check_srq(call, r, p);
	if (error != 0)
		return error;
	error = raw_check_create_qp(call, r);
	return error != 0 ? error : check_caps(call, r);
}

/* A ring for that many requests (one slot of a ring stays free). None for 0. */
static int make_ring(struct call *call, struct ring_side *side, uint32_t requests, uint32_t stride,
		     uint64_t *offset, size_t *octets)
{
	uint32_t size = power_of_two_above(requests + 1);
	struct arena *a = call->client->arena;
	int error;

	if (requests == 0)
		return 0;
	*octets = ring_bytes(size, stride);
	error = queues_take(call, *octets, offset);
	if (error != 0)
		return error;
	ring_format(arena_at(a, *offset), size, false);
	ring_side_init(side, arena_at(a, *offset), size, stride);
	return 0;
}

static int make_queues(struct call *call, struct engine_qp *q, const struct request_create_qp *r)
{
	int error = queues_take(call, sizeof(struct qp_page), &q->page_offset);

	if (error != 0)
		return error;
	q->page = arena_at(q->client->arena, q->page_offset);
	error = make_ring(call, &q->sq, r->max_send_wr,
			  send_work_stride(r->max_send_sge, raw_slot_octets(r)), &q->sq_offset,
			  &q->sq_octets);
	if (error != 0)
		return error;
	return make_ring(call, &q->rq, r->max_recv_wr, recv_work_stride(r->max_recv_sge),
			 &q->rq_offset, &q->rq_octets);
}

static void free_queues(struct engine_qp *q)
{
	queues_give(q->client, q->page_offset, sizeof(struct qp_page));
	queues_give(q->client, q->sq_offset, q->sq_octets);
	queues_give(q->client, q->rq_offset, q->rq_octets);
}

static void core_caps(const struct engine_qp *q, const struct request_create_qp *r,
		      const struct pd *p, struct qp_caps *caps)
{
	*caps = (struct qp_caps){
		.type = r->type,
		.qpn = q->qpn,
		.pd = p->number,
		.handle = q->handle,
		.max_send_wr = MAX_OF(r->max_send_wr, 1u),
		.max_send_sge = r->max_send_sge,
		.max_recv_sge = q->srq != NULL ? q->srq->max_sge : r->max_recv_sge,
		.max_inline = raw_slot_octets(r),
		.max_rd_atomic = LIMIT_RD_ATOMIC,
		.tickets = client_mover(q->client) != NULL ? LIMIT_BURST : LIMIT_TICKETS_NEW,
		.records_later = true,
		.port_mtu = q->client->engine->active_mtu,
		.max_frame = q->client->engine->max_frame,
		.sq_sig_all = r->sq_sig_all != 0,
		.srq_pd = q->srq != NULL ? q->srq->pd_number : 0,
		.srq = q->srq != NULL ? q->srq->number : 0,
		.has_srq = q->srq != NULL,
	};
	if (q->srq != NULL && q->srq->tags != NULL)
		tags_widen(caps);
}

/* The core and the private copy of a receive request, in one block of memory. */
static int make_core(struct call *call, struct engine_qp *q, const struct qp_caps *caps)
{
	void *receive;
	int error = qp_memory_make(call, q, caps, recv_work_stride(caps->max_recv_sge), &receive);

	if (error == 0)
		q->receive = receive;
	return error;
}

static int qp_build(struct call *call, struct engine_qp *q, const struct request_create_qp *r)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_QP];
	const struct pd *p = object_find(call->client, OBJECT_PD, r->pd);
	struct engine *e = call->engine;
	struct qp_caps caps;
	int error;

	q->handle = handle_reserve(t);
	if (q->handle == 0)
		return call_no_handle(call, OBJECT_QP);
	q->lcore = q->srq != NULL && q->srq->lcore != NULL
			   ? q->srq->lcore
			   : &e->lcore[e->control->next_lcore++ % e->lcores];
	q->qpn = peers_reserve_number(e, q->lcore->index, q);
	if (q->qpn == 0)
		return call_fail(call, ENOMEM, "no queue pair number is free");
	error = make_queues(call, q, r);
	if (error != 0)
		return error;
	q->page->lcore = q->lcore->index;
	core_caps(q, r, p, &caps);
	return make_core(call, q, &caps);
}

static void qp_unbuild(struct client *c, struct engine_qp *q)
{
	qp_memory_free(q);
	free_queues(q);
	if (q->handle != 0)
		handle_free(&c->objects->table[OBJECT_QP], q->handle);
	free(q);
}

static void attach(struct lcore *l, void *arg, nanotime now)
{
	lcore_qp_attach(l, arg, now);
}

static void qp_enter(struct call *call, struct engine_qp *q)
{
	struct engine *e = call->engine;
	struct pd *p = object_find(call->client, OBJECT_PD, q->pd);

	p->users++;
	q->send_cq->users++;
	if (q->recv_cq != NULL)
		q->recv_cq->users++;
	if (q->srq != NULL)
		q->srq->users++;
	e->qp_count++;
	LIST_INSERT_HEAD(&e->qps, q, engine_link);
	lcore_call(q->lcore, attach, q);
	handle_publish(&call->client->objects->table[OBJECT_QP], q->handle, q);
}

static void describe_qp(const struct engine_qp *q, const struct request_create_qp *r,
			struct reply_create_qp *reply)
{
	reply->handle = q->handle;
	reply->qpn = q->qpn;
	reply->lcore = q->lcore->index;
	reply->max_send_wr = r->max_send_wr;
	reply->max_recv_wr = r->max_recv_wr;
	reply->max_send_sge = r->max_send_sge;
	reply->max_recv_sge = r->max_recv_sge;
	reply->max_inline = r->max_inline;
	reply->sq_size = q->sq.size;
	reply->sq_stride = q->sq.stride;
	reply->rq_size = q->rq.size;
	reply->rq_stride = q->rq.stride;
	reply->sq_offset = q->sq_offset;
	reply->rq_offset = q->rq_offset;
	reply->page_offset = q->page_offset;
	reply->mtu = 128u << q->client->engine->active_mtu;
}

int cmd_create_qp(struct call *call)
{
	struct request_create_qp wanted = *(const struct request_create_qp *)call->request;
	struct reply_create_qp *reply = (struct reply_create_qp *)&call->reply;
	const struct request_create_qp *r = &wanted;
	struct engine_qp *q;
	int error;

	if (wanted.type == QP_TYPE_XRC_RECV)
		return target_create(call);
	if (wanted.srq != 0 || !has_receives(r))
		wanted.max_recv_wr = wanted.max_recv_sge = 0;
	error = check_create_qp(call, r);
	if (error != 0)
		return error;
	q = aligned_alloc(64, round_up(sizeof(*q), 64));
	if (q == NULL)
		return ENOMEM;
	memset(q, 0, sizeof(*q));
	q->client = call->client;
	q->cookie = r->cookie;
	q->pd = r->pd;
	q->send_cq = object_find(call->client, OBJECT_CQ, r->send_cq);
	if (has_receives(r))
		q->recv_cq = object_find(call->client, OBJECT_CQ, r->recv_cq);
	q->srq = object_find(call->client, OBJECT_SRQ, r->srq);
	q->context = q->send_cq->context;
	q->async_fd = q->send_cq->async_fd;
	q->type = (uint8_t)r->type;
	q->unreliable = qp_type_unreliable(r->type);
	q->flow_state = r->type == QP_TYPE_UD ? FLOW_BY_HANDLE : FLOW_NONE;
	raw_setup_qp(q, r);
	error = qp_build(call, q, r);
	if (error != 0) {
		if (q->qpn != 0)
			directory_remove(call->engine, q, clock_now());
		qp_unbuild(call->client, q);
		return error;
	}
	qp_enter(call, q);
	describe_qp(q, r, reply);
	if (r->cm_id != 0)
		cm_start_qp(call, r->cm_id, q->handle, &reply->state);
	return 0;
}

struct query {
	struct engine_qp *qp;
	struct qp_attributes *attributes;
};

static void query_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct query *q = arg;

	qp_query(q->qp->core, q->attributes);
}

#define QKEY_CONTROLLED UINT32_C(0x80000000) /* IBTA 10.2.5: programs may not choose these */

/* A modify_qp that the lcore executes. */
struct modify {
	struct engine_qp *qp;
	struct qp_attributes attributes;
	uint32_t mask;
	uint32_t port_mtu, max_frame; /* of the port, which may have changed since the last one */
	bool has_flow;
	enum flow_state flow_state;
	struct flow flow;
	int error;
	const char *why;
	enum qp_state state;
	bool copies; /* were under way when it was executed */
};

static void modify_on_lcore(struct lcore *l, struct modify *m, nanotime now)
{
	struct engine_qp *q = m->qp;

	if ((m->mask & QP_ATTR_STATE) && m->attributes.state == QP_STATE_ERR)
		lcore_let_arrive(l, now);
	m->copies = qp_has_copies(q);
	qp_port_carries(q->core, m->port_mtu, m->max_frame);
	m->error = qp_modify(q->core, &m->attributes, m->mask, &m->why);
	m->state = qp_state(q->core);
	if (m->error != 0)
		return;
	if (m->has_flow) {
		q->flow = m->flow;
		q->flow_state = (uint8_t)m->flow_state;
	}
	/* Release: a program that sees the state sees what led to it. */
	__atomic_store_n(&q->page->state, m->state, __ATOMIC_RELEASE);
	lcore_qp_touch(l, q, now);
}

struct modifications {
	struct modify step[QP_STEPS_MAX];
	uint32_t steps;
	uint32_t done; /* steps executed, including a failed one */
};

static void take_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct modifications *all = arg;
	int error = 0;

	while (error == 0 && all->done < all->steps) {
		struct modify *m = &all->step[all->done++];

		modify_on_lcore(l, m, now);
		error = m->error;
	}
}

static int prepare_path(struct call *call, struct modify *m)
{
	struct qp_path *path = &m->attributes.path;
	struct engine *e = call->engine;
	struct mac mac = { { 0 } };
	uint32_t dest_qpn = m->attributes.dest_qpn;

	if (path_check(call, path) != 0)
		return EINVAL;
	if (gid_is_multicast(&path->dgid))
		return call_fail(call, EINVAL, "dgid is a multicast group");
	if ((m->mask & QP_ATTR_DEST_QPN) == 0)
		dest_qpn = m->qp->peer_qpn;
	if (m->qp->type != QP_TYPE_UD && peers_taken(e, m->qp, &path->dgid, dest_qpn))
		return call_fail(call, EADDRINUSE,
				 "a queue pair of another user is already connected to it");
	if (destination_find_way(e, path, &m->flow_state, &mac) != 0)
		return ENOMEM;
	flow_make_of(e, m->qp, path, dest_qpn, &mac, &m->flow);
	m->has_flow = true;
	return 0;
}

static int prepare(struct call *call, struct modify *m)
{
	int error = 0;

	memset(&m->attributes.path.sgid, 0, sizeof(m->attributes.path.sgid));
	if (m->mask & QP_ATTR_AV)
		error = prepare_path(call, m);
	if (error == 0 && (m->mask & QP_ATTR_MAX_DEST_RD_ATOMIC))
		error = records_provide(call, m->qp, m->attributes.max_dest_rd_atomic);
	return error;
}

/* With a rate limit, or in SQD, requests may wait for long: cmd_ah.c needs to know. */
static void note_holding(struct engine_qp *q, const struct modify *m)
{
	if (q->may_hold || q->type != QP_TYPE_UD || m->error != 0 ||
	    !(m->state == QP_STATE_SQD || (m->mask & QP_ATTR_RATE_LIMIT)))
		return;
	q->may_hold = true;
	LIST_INSERT_HEAD(&q->client->objects->holding, q, holding_link);
}

/* After a step: records the queue pair's peer for the control path. */
static void note_peer(struct engine *e, struct engine_qp *q, const struct modify *m)
{
	const struct qp_attributes *a = &m->attributes;

	if (m->error != 0)
		return;
	if (m->state == QP_STATE_RESET) {
		peers_leave(q);
		placing_leave(e, q);
	}
	if (!m->has_flow)
		return;
	destination_of_qp(e, q, &a->path);
	if (q->type != QP_TYPE_UD)
		peers_enter(e, q, m->mask & QP_ATTR_DEST_QPN ? a->dest_qpn : q->peer_qpn);
}

/* A step that connects it says where its peer's packets will arrive. */
static void place_by_peer(struct engine *e, struct engine_qp *q, const struct modifications *all)
{
	for (uint32_t i = 0; i < all->steps; i++) {
		const struct modify *m = &all->step[i];

		if (m->has_flow && m->flow_state != FLOW_LOOP && (m->mask & QP_ATTR_DEST_QPN))
			placing_connect(e, q, &m->attributes.path, m->attributes.dest_qpn);
	}
}

int qp_take_steps(struct call *call, struct engine_qp *q, const struct qp_step *step,
		  uint32_t steps, uint32_t *state)
{
	struct modifications all = { .steps = steps };
	const struct modify *last;
	bool cut_off = false;

	for (uint32_t i = 0; i < steps; i++) {
		struct modify *m = &all.step[i];
		int error;

		m->qp = q;
		m->attributes = step[i].attributes;
		m->mask = step[i].mask;
		m->port_mtu = call->engine->active_mtu;
		m->max_frame = call->engine->max_frame;
		error = prepare(call, m);
		if (error != 0)
			return error;
	}
	place_by_peer(call->engine, q, &all);
	lcore_call(q->lcore, take_on_lcore, &all);
	for (uint32_t i = 0; i < all.done; i++) {
		note_peer(call->engine, q, &all.step[i]);
		note_holding(q, &all.step[i]);
		cut_off |= all.step[i].copies && all.step[i].state == QP_STATE_RESET;
	}
	last = &all.step[all.done - 1];
	if (last->error != 0)
		return call_fail(call, last->error, "%s", last->why != NULL ? last->why : "");
	*state = last->state;
	/*
	 * RESET gives the program its memory back without completions, so it waits for the copies
	 * that it cut off.
	 */
	return cut_off ? call_after_copies(call, NULL, NULL) : 0;
}

int cmd_modify_qp(struct call *call)
{
	const struct request_modify_qp *r = (const struct request_modify_qp *)call->request;
	struct reply_modify_qp *reply = (struct reply_modify_qp *)&call->reply;
	const struct qp_step step = { r->attributes, r->mask };
	struct engine_qp *q = qp_of_handle(call->client, r->qp);
	int error;

	if (q == NULL)
		return call_fail(call, EINVAL, "no such queue pair");
	if ((r->mask & QP_ATTR_QKEY) && (r->attributes.qkey & QKEY_CONTROLLED) &&
	    !client_is_privileged(call->client))
		return call_fail(call, EPERM,
				 "Q_Keys with the top bit set are for privileged programs");
	error = qp_take_steps(call, q, &step, 1, &reply->state);
	reply->mtu = 128u << qp_capabilities(q->core)->port_mtu;
	return error;
}

int cmd_query_qp(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_query_qp *reply = (struct reply_query_qp *)&call->reply;
	struct query q = { qp_of_handle(call->client, r->handle), &reply->attributes };

	if (q.qp == NULL)
		return call_fail(call, EINVAL, "no such queue pair");
	lcore_call(q.qp->lcore, query_on_lcore, &q);
	return 0;
}

void qp_free(struct client *c, struct engine_qp *q)
{
	struct pd *p = object_find(c, OBJECT_PD, q->pd);

	LIST_REMOVE(q, engine_link);
	peers_leave(q);
	placing_leave(c->engine, q);
	destination_leave_qp(q);
	if (q->may_hold)
		LIST_REMOVE(q, holding_link);
	p->users--;
	q->send_cq->users--;
	if (q->recv_cq != NULL)
		q->recv_cq->users--;
	if (q->srq != NULL)
		q->srq->users--;
	c->engine->qp_count--;
	qp_unbuild(c, q);
}
