/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where packets go: one of our own addresses (round inside the engine), a MAC address behind the
 * port, or nowhere. Frames that are not RoCE come here from the lcores; what the neighbour table
 * wants to say leaves through lcore 0. Queue pairs whose next hop is not known hold their packets
 * until it is; all are looked at again when a MAC address or an address of our own changes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/neighbour/neighbour.h"
#include "engine/control.h"

#define WAIT_EVERY     (5 * TIME_MS) /* while an answer is awaited */
#define RETRY_EVERY    (500 * TIME_MS) /* while somebody is unreachable */
#define FRAMES_AT_ONCE 256u

#define HOP_LIMIT_DEFAULT 64u

/* A group that somebody here wants: queue pairs (mcast.c), joins of rdma_cm (cmd_cm_join.c). */
struct wanted_group {
	struct gid group;
	uint32_t users; /* 0: a free place */
};

struct neighbour_agent {
	struct neighbour_table *table;
	uint32_t generation; /* as flows know it */
	uint32_t waiting; /* queue pairs in FLOW_NONE with a path, at least */
	uint32_t unreachable;
	nanotime retry_at;
	bool stale; /* our own addresses changed */
	struct neighbour_frames out;
	struct wanted_group wanted[LIMIT_ENGINE_GROUPS];
};

/* ---- sending ---- */

static void send_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct port *port = l->engine->port;
	struct rte_mbuf *m = arg;
	uint32_t *busy = &l->engine->tx_busy[l->tx_queue];

	while (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE) != 0)
		rte_pause();
	/* A frame that finds the port full is lost, as on a wire; the table asks again. */
	if (port->ops->tx_burst(port, l->tx_queue, &m, 1) == 0)
		rte_pktmbuf_free(m);
	__atomic_store_n(busy, 0, __ATOMIC_RELEASE);
}

static void send_frame(struct engine *e, const uint8_t *octets, uint32_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->pool);
	char *to = m != NULL ? rte_pktmbuf_append(m, (uint16_t)length) : NULL;

	if (to == NULL) {
		rte_pktmbuf_free(m);
		return;
	}
	memcpy(to, octets, length);
	lcore_call(&e->lcore[0], send_on_lcore, m);
}

static void send_frames(struct engine *e)
{
	struct neighbour_frames *out = &e->control->neighbours->out;

	for (uint32_t i = 0; i < out->count; i++)
		send_frame(e, out->octets + out->frame[i].offset, out->frame[i].length);
	neighbour_frames_clear(out);
}

/* ---- the table ---- */

static void set_addresses(struct engine *e)
{
	const struct uroce_options *o = &e->control->options;
	struct neighbour_agent *a = e->control->neighbours;
	struct neighbour_address address[LIMIT_GIDS] = { 0 };
	uint32_t n = 0;

	for (uint32_t i = 0; o->addresses == 0 && i < e->port->addresses; i++) {
		address[n].gid = e->port->address[i].gid;
		address[n++].prefix = e->port->address[i].prefix;
	}
	for (uint32_t i = 0; i < o->addresses; i++) {
		memcpy(address[n].gid.octet, o->address[i].octet, 16);
		address[n++].prefix = o->address[i].prefix;
	}
	/* The link-local address is ours as well, wherever nobody else answers for it. */
	if (n < LIMIT_GIDS) {
		address[n].gid = e->gid[0].gid;
		address[n++].prefix = 64;
	}
	neighbour_set_addresses(a->table, address, n);
}

int neighbour_agent_open(struct engine *e, char *why, size_t why_size)
{
	const struct uroce_options *o = &e->control->options;
	struct gid gateway[ARRAY_SIZE(o->gateway)];
	struct neighbour_agent *a;

	if (e->port == NULL)
		return 0;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return ENOMEM;
	a->table = neighbour_table_new(&e->mac, e->vlan,
				       e->port->kernel_answers ? e->port->ifindex : 0);
	if (a->table == NULL) {
		snprintf(why, why_size, "cannot read the kernel's neighbours: %s", strerror(errno));
		free(a);
		return errno;
	}
	e->control->neighbours = a;
	set_addresses(e);
	for (uint32_t i = 0; i < o->gateways; i++)
		memcpy(gateway[i].octet, o->gateway[i].octet, 16);
	neighbour_set_gateways(a->table, gateway, o->gateways);
	a->generation = neighbour_generation(a->table);
	return 0;
}

void neighbour_agent_close(struct engine *e)
{
	struct neighbour_agent *a = e->control->neighbours;

	if (a == NULL)
		return;
	neighbour_table_free(a->table);
	free(a);
	e->control->neighbours = NULL;
}

void neighbour_agent_announce(struct engine *e)
{
	struct neighbour_agent *a = e->control->neighbours;

	if (a == NULL)
		return;
	set_addresses(e);
	a->stale = true;
	neighbour_announce(a->table, &a->out);
	send_frames(e);
}

uint32_t neighbour_agent_news(const struct engine *e)
{
	const struct neighbour_agent *a = e->control->neighbours;

	return a != NULL ? neighbour_generation(a->table) : 0;
}

/* The group's place, else a free one, else NULL. */
static struct wanted_group *wanted_place(struct neighbour_agent *a, const struct gid *group)
{
	struct wanted_group *free_place = NULL;

	for (uint32_t i = 0; i < LIMIT_ENGINE_GROUPS; i++) {
		if (a->wanted[i].users == 0)
			free_place = free_place != NULL ? free_place : &a->wanted[i];
		else if (gid_equal(&a->wanted[i].group, group))
			return &a->wanted[i];
	}
	return free_place;
}

int neighbour_agent_join(struct engine *e, const struct gid *group)
{
	struct neighbour_agent *a = e->control->neighbours;
	struct wanted_group *w;
	int error;

	if (a == NULL)
		return 0;
	w = wanted_place(a, group);
	if (w == NULL)
		return ENOSPC;
	/* Its reports leave with the next tick, which follows every command. */
	error = w->users == 0 ? neighbour_join(a->table, group, clock_now()) : 0;
	if (error != 0)
		return error;
	w->group = *group;
	w->users++;
	return 0;
}

void neighbour_agent_leave(struct engine *e, const struct gid *group)
{
	struct neighbour_agent *a = e->control->neighbours;
	struct wanted_group *w = a != NULL ? wanted_place(a, group) : NULL;

	if (w == NULL || w->users == 0 || --w->users > 0)
		return;
	neighbour_leave(a->table, group, clock_now(), &a->out);
	send_frames(e);
}

/* ---- flows ---- */

enum flow_state flow_resolve(struct engine *e, const struct gid *dgid, struct mac *mac)
{
	struct neighbour_agent *a = e->control->neighbours;

	if (gid_is_own(e, dgid))
		return FLOW_LOOP;
	if (a == NULL) /* nobody is there but us */
		return gid_is_multicast(dgid) ? FLOW_LOOP : FLOW_UNREACHABLE;
	switch (neighbour_resolve(a->table, dgid, clock_now(), mac)) {
	case 0:
		return FLOW_PORT;
	case EINPROGRESS:
		a->waiting++;
		return FLOW_NONE;
	default:
		a->unreachable++;
		return FLOW_UNREACHABLE;
	}
}

void flow_make(const struct engine *e, const struct qp_path *path, uint32_t local_qpn,
	       uint32_t dest_qpn, const struct mac *mac, struct flow *flow)
{
	struct address_vector av = {
		.src_gid = path->sgid,
		.dst_gid = path->dgid,
		.src_mac = e->mac,
		.dst_mac = gid_is_own(e, &path->dgid) ? e->mac : *mac,
		.vlan = e->vlan,
		.priority = path->sl & 7,
		.traffic_class = path->traffic_class,
		.hop_limit = path->hop_limit != 0 ? path->hop_limit : HOP_LIMIT_DEFAULT,
		.src_port = flow_source_port(path->flow_label, local_qpn, dest_qpn),
		.flow_label = path->flow_label,
	};

	flow_init(flow, &av);
}

struct new_flow {
	struct engine_qp *qp;
	enum flow_state state;
	struct flow flow;
};

static void set_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct new_flow *n = arg;

	n->qp->flow = n->flow;
	n->qp->flow_state = (uint8_t)n->state;
	lcore_qp_touch(l, n->qp, now);
}

static bool is_answer(uint8_t flow_state)
{
	return flow_state == FLOW_PORT || flow_state == FLOW_LOOP;
}

/*
 * Those whose answer changed give way to others; lcores may read the old ones for a moment. Programs
 * may have many handles: unless `all` may have changed, only those without an answer are looked at.
 */
static void renew_handles(struct engine *e, bool all)
{
	LIST_HEAD(, engine_ah) old = LIST_HEAD_INITIALIZER(old);
	struct engine_ah *ah, *next, *fresh;

	for (ah = LIST_FIRST(&e->ahs); ah != NULL; ah = next) {
		next = LIST_NEXT(ah, engine_link);
		if (!all && is_answer(ah->flow_state))
			continue;
		fresh = ah_renew(e, ah);
		if (fresh == NULL)
			continue;
		LIST_INSERT_BEFORE(ah, fresh, engine_link);
		LIST_REMOVE(ah, engine_link);
		LIST_INSERT_HEAD(&old, ah, engine_link);
		handle_publish(&ah->client->objects->table[OBJECT_AH], ah->handle, fresh);
	}
	if (LIST_EMPTY(&old))
		return;
	engine_grace_period(e);
	while ((ah = LIST_FIRST(&old)) != NULL) {
		LIST_REMOVE(ah, engine_link);
		free(ah);
	}
}

/*
 * Queue pairs with a path are resolved again; those whose answer changed are told. As with handles:
 * unless `all` may have changed, only those without an answer. Each may be two questions to the
 * kernel, and some id of rdma_cm often waits for an address where nobody is.
 */
static void resolve_again(struct engine *e)
{
	struct neighbour_agent *a = e->control->neighbours;
	bool all = a->stale || a->generation != neighbour_generation(a->table);
	struct new_flow n;
	struct mac mac;

	a->waiting = 0;
	a->unreachable = 0;
	a->generation = neighbour_generation(a->table);
	a->stale = false;
	renew_handles(e, all);
	LIST_FOREACH(n.qp, &e->qps, engine_link)
	{
		if (gid_is_zero(&n.qp->path.dgid) || (!all && is_answer(n.qp->flow_state)))
			continue;
		memset(&mac, 0, sizeof(mac));
		n.state = flow_resolve(e, &n.qp->path.dgid, &mac);
		flow_make(e, &n.qp->path, n.qp->qpn, qp_destination(n.qp), &mac, &n.flow);
		if (n.state != n.qp->flow_state ||
		    memcmp(n.flow.header, n.qp->flow.header, sizeof(n.flow.header)) != 0)
			lcore_call(n.qp->lcore, set_on_lcore, &n);
	}
}

void neighbour_agent_frames(struct engine *e, nanotime now)
{
	struct neighbour_agent *a = e->control->neighbours;
	void *p;

	if (e->strangers == NULL)
		return;
	for (uint32_t i = 0; i < FRAMES_AT_ONCE && rte_ring_dequeue(e->strangers, &p) == 0; i++) {
		struct rte_mbuf *m = p;

		neighbour_input(a->table, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, now,
				&a->out);
		rte_pktmbuf_free(m);
		if (a->out.count > NEIGHBOUR_FRAMES / 2)
			send_frames(e);
	}
	send_frames(e);
	if (a->generation != neighbour_generation(a->table))
		resolve_again(e);
	if (!rte_ring_empty(e->strangers))
		control_wake(e);
}

nanotime neighbour_agent_tick(struct engine *e, nanotime now)
{
	struct neighbour_agent *a = e->control->neighbours;
	nanotime next = neighbour_tick(a->table, now, &a->out);

	send_frames(e);
	if (a->waiting > 0 || a->stale || a->generation != neighbour_generation(a->table) ||
	    (a->unreachable > 0 && now >= a->retry_at)) {
		resolve_again(e);
		a->retry_at = now + RETRY_EVERY;
		send_frames(e);
	}
	if (a->waiting > 0)
		next = time_earlier(next, now + WAIT_EVERY);
	return a->unreachable > 0 ? time_earlier(next, a->retry_at) : next;
}
