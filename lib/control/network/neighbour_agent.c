/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way to an address: an own one (looped inside the engine), a MAC address behind the port, or
 * none. Lcores pass frames that are not RoCE to this file; frames of the neighbour table leave
 * through lcore 0. Queue pairs hold their packets until the next hop is known. destinations.h tells
 * users of a change of a MAC address or of an own address.
 *
 * Atomics: tx_busy is the lock of a tx queue, which the lcore's thread and this one (for a sleeping
 * lcore) may use. Acquire and release order the port's own state.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_pause.h>

#include "base/bits.h"
#include "drivers/neighbour/neighbour.h"
#include "control/control.h"
#include "control/network/destinations.h"
#include "lcore/capture/capture.h"
#include "queue/pointers.h"
#include "wire/header.h"

#define WAIT_EVERY  (LIMIT_NEIGHBOUR_WAIT_MS * TIME_MS)
#define RETRY_EVERY (LIMIT_NEIGHBOUR_RETRY_MS * TIME_MS)

#define HOP_LIMIT_DEFAULT 64u

/* A group that queue pairs (groups.c) or joins of rdma_cm (cmd_cm_join.c) want. */
struct wanted_group {
	struct gid group;
	uint32_t users; /* 0: the entry is free */
};

struct neighbour_agent {
	struct neighbour_table *table;
	uint32_t generation; /* of the table, at the last look */
	nanotime wait_at; /* next look at destinations that wait for a MAC address, ... */
	nanotime retry_at; /* ... and at unreachable ones */
	struct neighbour_frames out;
	struct wanted_group wanted[LIMIT_TOLD_GROUPS];
};

/* ---- sending ---- */

struct burst {
	struct rte_mbuf *frame[LIMIT_NEIGHBOUR_FRAMES];
	uint32_t frames;
};

static void send_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct port *port = l->engine->port;
	uint32_t *busy = &l->engine->tx_busy[l->tx_queue];
	struct burst *b = arg;
	uint32_t sent;

	while (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE) != 0)
		rte_pause();
	capture_frames(l, b->frame, b->frames, CAPTURE_SENT);
	sent = port->ops->tx_burst(port, l->tx_queue, b->frame, (uint16_t)b->frames);
	__atomic_store_n(busy, 0, __ATOMIC_RELEASE);
	/* A frame that the port does not take is lost, as on a wire. The table asks again. */
	for (uint32_t i = sent; i < b->frames; i++)
		rte_pktmbuf_free(b->frame[i]);
}

static struct rte_mbuf *make_frame(struct engine *e, const uint8_t *octets, uint32_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->pool);
	char *to = m != NULL ? rte_pktmbuf_append(m, (uint16_t)length) : NULL;

	if (to == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	memcpy(to, octets, length);
	return m;
}

/* In bursts, one message each: there may be a flood of requests to answer. */
static void send_frames(struct engine *e)
{
	struct neighbour_frames *out = &e->control->neighbours->out;
	struct burst b = { .frames = 0 };

	for (uint32_t i = 0; i < out->count; i++) {
		b.frame[b.frames] =
			make_frame(e, out->octets + out->frame[i].offset, out->frame[i].length);
		b.frames += b.frame[b.frames] != NULL;
	}
	if (b.frames > 0)
		lcore_call(&e->lcore[0], send_on_lcore, &b);
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
	/*
	 * The link-local address belongs to the engine as well, unless the kernel answers for it.
	 */
	address[n].gid = e->gid[0].gid;
	address[n++].prefix = 64;
	neighbour_set_addresses(a->table, address, n);
}

/* The group's entry, else a free one, else NULL. */
static struct wanted_group *wanted_place(struct neighbour_agent *a, const struct gid *group)
{
	struct wanted_group *free_place = NULL;

	for (uint32_t i = 0; i < LIMIT_TOLD_GROUPS; i++) {
		if (a->wanted[i].users == 0)
			free_place = free_place != NULL ? free_place : &a->wanted[i];
		else if (gid_equal(&a->wanted[i].group, group))
			return &a->wanted[i];
	}
	return free_place;
}

/* Counts one more user of the group. The next tick, which follows every command, reports the first. */
static struct wanted_group *want(struct neighbour_agent *a, const struct gid *group, int *error)
{
	struct wanted_group *w = wanted_place(a, group);

	*error = ENOSPC;
	if (w != NULL)
		*error = w->users == 0 ? neighbour_join(a->table, group, clock_now()) : 0;
	if (*error != 0)
		return NULL;
	w->group = *group;
	w->users++;
	return w;
}

/*
 * A node joins the solicited-node group of each own address (RFC 4861 7.2.1). A switch that looks into
 * MLD passes the questions of neighbours only to ports that have reported it. The kernel joins those
 * of addresses for which it answers.
 */
static int join_solicited(struct engine *e)
{
	struct neighbour_agent *a = e->control->neighbours;
	int error = 0;

	for (uint32_t i = 0; !e->port->kernel_answers && i < LIMIT_GIDS && error == 0; i++) {
		struct gid group = { { 0xff, 2, [11] = 1, [12] = 0xff } };
		const struct gid *own = &e->gid[i].gid;

		if (gid_is_zero(own) || gid_is_ipv4(own))
			continue;
		memcpy(&group.octet[13], &own->octet[13], 3);
		want(a, &group, &error);
	}
	return error;
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
	e->control->destinations = destinations_new();
	if (e->control->destinations == NULL) {
		neighbour_table_free(a->table);
		free(a);
		return ENOMEM;
	}
	e->control->neighbours = a;
	set_addresses(e);
	for (uint32_t i = 0; i < o->gateways; i++)
		memcpy(gateway[i].octet, o->gateway[i].octet, 16);
	neighbour_set_gateways(a->table, gateway, o->gateways);
	a->generation = neighbour_generation(a->table);
	return join_solicited(e);
}

void neighbour_agent_close(struct engine *e)
{
	struct neighbour_agent *a = e->control->neighbours;

	if (a == NULL)
		return;
	neighbour_table_free(a->table);
	free(a);
	e->control->neighbours = NULL;
	destinations_free(e->control->destinations);
	e->control->destinations = NULL;
}

void neighbour_agent_announce(struct engine *e)
{
	struct neighbour_agent *a = e->control->neighbours;

	if (a == NULL)
		return;
	set_addresses(e);
	heard_update(e);
	destinations_stale(e->control->destinations);
	neighbour_announce(a->table, &a->out);
	send_frames(e);
}

uint32_t neighbour_agent_news(const struct engine *e)
{
	const struct neighbour_agent *a = e->control->neighbours;

	return a != NULL ? neighbour_generation(a->table) : 0;
}

const struct gid *neighbour_agent_group(const struct engine *e, uint32_t *at)
{
	const struct neighbour_agent *a = e->control->neighbours;

	while (a != NULL && *at < LIMIT_TOLD_GROUPS) {
		const struct wanted_group *w = &a->wanted[(*at)++];

		if (w->users > 0)
			return &w->group;
	}
	return NULL;
}

int neighbour_agent_join(struct engine *e, const struct gid *group)
{
	struct neighbour_agent *a = e->control->neighbours;
	struct wanted_group *w;
	int error;

	if (a == NULL)
		return 0;
	w = want(a, group, &error);
	if (w != NULL && w->users == 1)
		heard_update(e); /* before the program learns that it has joined */
	return error;
}

void neighbour_agent_leave(struct engine *e, const struct gid *group)
{
	struct neighbour_agent *a = e->control->neighbours;
	struct wanted_group *w = a != NULL ? wanted_place(a, group) : NULL;

	if (w == NULL || w->users == 0 || --w->users > 0)
		return;
	neighbour_leave(a->table, group, clock_now(), &a->out);
	send_frames(e);
	heard_update(e);
}

/* ---- flows ---- */

/*
 * The kernel refuses to look for routes from an address that it does not have: one of --ip, or GID
 * 0.
 */
static const struct gid *if_kernels(const struct engine *e, const struct gid *sgid)
{
	for (uint32_t i = 0; i < e->port->addresses; i++)
		if (gid_equal(&e->port->address[i].gid, sgid))
			return sgid;
	return NULL;
}

int neighbour_agent_source(struct engine *e, const struct gid *dgid, struct gid *source)
{
	struct neighbour_agent *a = e->control->neighbours;

	if (a == NULL || if_kernels(e, source) == NULL)
		memset(source, 0, sizeof(*source));
	return a != NULL ? neighbour_source_towards(a->table, dgid, source) : 0;
}

enum flow_state flow_resolve(struct engine *e, const struct gid *sgid, const struct gid *dgid,
			     struct mac *mac)
{
	struct neighbour_agent *a = e->control->neighbours;

	if (gid_is_own(e, dgid))
		return FLOW_LOOP;
	if (a == NULL) /* without a port there are only own addresses */
		return gid_is_multicast(dgid) ? FLOW_LOOP : FLOW_UNREACHABLE;
	switch (neighbour_resolve_from(a->table, if_kernels(e, sgid), dgid, clock_now(), mac)) {
	case 0:
		return FLOW_PORT;
	case EINPROGRESS:
		return FLOW_NONE;
	default:
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

void flow_make_of(const struct engine *e, const struct engine_qp *q, const struct qp_path *path,
		  uint32_t dest_qpn, const struct mac *mac, struct flow *flow)
{
	struct qp_path way = *path;

	if (!q->unreliable && (way.traffic_class & ECN_BITS) == 0)
		way.traffic_class |= ECN_ECT_0;
	flow_make(e, &way, q->qpn, dest_qpn, mac, flow);
}

void neighbour_agent_frames(struct engine *e, nanotime now)
{
	struct neighbour_agent *a = e->control->neighbours;
	void *p;

	if (e->strangers == NULL)
		return;
	for (uint32_t i = 0; i < LIMIT_STRANGERS_AT_ONCE && pointer_take(e->strangers, &p); i++) {
		struct rte_mbuf *m = p;

		neighbour_input(a->table, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, now,
				&a->out);
		rte_pktmbuf_free(m);
		if (a->out.count > LIMIT_NEIGHBOUR_FRAMES / 2)
			send_frames(e);
	}
	send_frames(e); /* the next tick handles what follows from them */
	if (control_has_more(e->strangers))
		control_wake(e);
}

/* Looks at the table for news, and at destinations that are due. */
static nanotime follow(struct engine *e, nanotime now)
{
	struct neighbour_agent *a = e->control->neighbours;
	struct destinations *ds = e->control->destinations;
	bool news = a->generation != neighbour_generation(a->table);
	bool retry = news || now >= a->retry_at, wait = news || now >= a->wait_at;
	nanotime next;

	if (news)
		destinations_news(ds);
	a->generation = neighbour_generation(a->table);
	if (retry)
		a->retry_at = now + RETRY_EVERY;
	if (wait)
		a->wait_at = now + WAIT_EVERY;
	next = destinations_slice(e, wait, retry, now);
	if (destinations_waiting(ds))
		next = time_earlier(next, a->wait_at);
	return destinations_unreachable(ds) ? time_earlier(next, a->retry_at) : next;
}

nanotime neighbour_agent_tick(struct engine *e, nanotime now)
{
	struct neighbour_agent *a = e->control->neighbours;
	nanotime next = neighbour_tick(a->table, now, &a->out);

	send_frames(e);
	next = time_earlier(next, follow(e, now));
	send_frames(e);
	return next;
}
