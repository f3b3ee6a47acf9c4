/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "sim/must.h"
#include "topology.h"

#define SEND_RING    512u /* frames */
#define POLL_TIME    100 /* ns */
#define BESIDE_TENTH 10 /* a tenth of the rate */
#define EDGE_TIMES   4 /* the other cables have the bottleneck's rate */

static enum make make_of(const struct scenario_config *c, uint32_t host, bool sends)
{
	switch (c->peers) {
	case PEERS_LINUX:
		return MAKE_LINUX;
	case PEERS_DCQCN:
		return MAKE_DCQCN;
	case PEERS_MIXED:
		return sends && host % 2 == 0 ? MAKE_LINUX : MAKE_UROCE;
	default:
		return MAKE_UROCE;
	}
}

/* Octets of a host's memory for each endpoint. */
static uint32_t endpoint_memory(const struct scenario_config *c)
{
	size_t each = transfer_memory(c->size, c->depth);

	if (c->beside == BESIDE_CM)
		each = MAX_OF(each, connects_memory());
	else if (c->beside != BESIDE_NONE)
		each = MAX_OF(each, beside_memory(c->mtu));
	return (uint32_t)each;
}

static double time_of(const struct scenario_config *c, bool sends)
{
	return sends || c->receiver_time <= 0 ? c->packet_time : c->receiver_time;
}

static void make_hosts(struct net *n, const struct scenario_config *c, const struct plan *plan)
{
	uint32_t *endpoints = must(calloc(n->hosts, sizeof(*endpoints)));
	bool *sends = must(calloc(n->hosts, sizeof(*sends)));
	size_t each = endpoint_memory(c);

	if (c->beside != BESIDE_NONE) {
		endpoints[plan[n->transfers].from]++;
		endpoints[plan[n->transfers].to]++;
	}
	for (uint32_t i = 0; i < n->transfers; i++) {
		endpoints[plan[i].from]++;
		endpoints[plan[i].to]++;
		sends[plan[i].from] = true;
	}
	n->host = must(calloc(n->hosts, sizeof(*n->host)));
	for (uint32_t i = 0; i < n->hosts; i++) {
		const struct host_config is = { .make = make_of(c, i, sends[i]),
						.receive_ring = c->ring,
						.send_ring = SEND_RING,
						.poll_time = POLL_TIME,
						.packet_time = (nanotime)time_of(c, sends[i]),
						.refuses = c->refuses,
						.refuses_for = (nanotime)c->refuses_for,
						.keeps = !c->forgetful };

		host_init(&n->host[i], i, n->hosts, &is, MAX_OF(1u, endpoints[i]) * each,
			  MAX_OF(1u, endpoints[i]), prng_next(&n->fabric.prng));
		n->host[i].key = node_register(&n->host[i].node, 0, n->host[i].node.size,
					       TRANSFER_BASE, ENDPOINT_PD, ENDPOINT_ACCESS, 1);
	}
	free(endpoints);
	free(sends);
}

static struct line_config cable(const struct scenario_config *c, double rate)
{
	return (struct line_config){ .rate = (uint64_t)rate,
				     .delay = (nanotime)c->delay,
				     .room = LINE_ENDLESS,
				     .ecn = LINE_ENDLESS,
				     .places = MAX_OF(1u, c->places) };
}

static struct line_config switch_port(const struct scenario_config *c, double rate)
{
	struct line_config is = cable(c, rate);

	is.room = (uint64_t)c->buffer;
	is.ecn = c->ecn > 0 ? (uint64_t)c->ecn : LINE_ENDLESS;
	return is;
}

static void make_switch(struct net *n, const struct scenario_config *c, uint32_t ports)
{
	switch_init(&n->node[n->switches++], ports, n->hosts,
		    c->shared > 0 ? (uint64_t)c->shared : LINE_ENDLESS);
}

/* A cable between a host and its switch. */
static void attach(struct net *n, const struct scenario_config *c, struct net_switch *s,
		   uint32_t port, uint32_t host, double rate, bool bad)
{
	struct line_config out = cable(c, rate), in = switch_port(c, rate);

	if (bad) {
		out.loss = c->loss;
		out.reorder = c->reorder;
	}
	line_init(&n->host[host].port, &out, &s->taker, NULL);
	line_init(&s->port[port], &in, &n->host[host].taker, &s->shared);
	s->route[host] = port;
}

static void make_star(struct net *n, const struct scenario_config *c, uint32_t sink)
{
	make_switch(n, c, n->hosts);
	for (uint32_t i = 0; i < n->hosts; i++)
		attach(n, c, &n->node[0], i, i, c->rate, true);
	/* What answers READs is the sink, whose own port is narrower than the switch's ports together. */
	n->bottleneck = c->opcode == WORK_RDMA_READ ? &n->host[sink].port
						    : &n->node[0].port[n->node[0].route[sink]];
}

/* The first half of the hosts is at one switch, the other half at the other switch. */
static void make_bottleneck(struct net *n, const struct scenario_config *c)
{
	uint32_t half = n->hosts / 2;
	struct line_config trunk = switch_port(c, c->rate);

	trunk.delay = (nanotime)c->trunk_delay;
	trunk.loss = c->loss;
	trunk.reorder = c->reorder;
	for (uint32_t s = 0; s < SWITCHES; s++)
		make_switch(n, c, half + 1);
	for (uint32_t s = 0; s < SWITCHES; s++) {
		for (uint32_t i = 0; i < half; i++)
			attach(n, c, &n->node[s], i, s * half + i, EDGE_TIMES * c->rate, false);
		for (uint32_t i = 0; i < half; i++)
			n->node[s].route[(1 - s) * half + i] = half;
		line_init(&n->node[s].port[half], &trunk, &n->node[1 - s].taker,
			  &n->node[s].shared);
	}
	n->bottleneck = &n->node[c->opcode == WORK_RDMA_READ].port[half]; /* where the octets go */
}

static void connect(struct net *n, const struct scenario_config *c, struct transfer *t,
		    const struct plan *plan)
{
	struct host *from = &n->host[plan->from], *to = &n->host[plan->to];
	bool read = c->opcode == WORK_RDMA_READ;
	struct endpoint_config out = { .make = from->is.make,
				       .type = QP_TYPE_RC,
				       .peer = plan->to,
				       .peer_qpn = endpoint_qpn(to),
				       .size = c->size,
				       .depth = c->depth,
				       .mtu = c->mtu,
				       .timeout = c->timeout,
				       .ect = c->ecn > 0,
				       .rate = c->rate,
				       .psn = prng_next(&n->fabric.prng) & 0xffffff };
	struct endpoint_config in = out;
	uint32_t each = endpoint_memory(c);
	uint32_t mine = from->endpoints * each, theirs = to->endpoints * each;

	in.make = to->is.make;
	in.peer = plan->from;
	in.peer_qpn = endpoint_qpn(from);
	t->from = from;
	t->to = to;
	t->measure = &n->measure;
	t->opcode = c->opcode;
	t->size = c->size;
	t->depth = c->depth;
	t->source_at = read ? theirs : mine;
	t->sink_at = read ? mine : theirs;
	t->source_key = read ? to->key : from->key;
	t->sink_key = read ? from->key : to->key;
	t->out = endpoint_add(from, &out);
	t->in = endpoint_add(to, &in);
}

static void connect_beside(struct net *n, const struct scenario_config *c, const struct plan *plan)
{
	struct host *from = &n->host[plan->from], *to = &n->host[plan->to];
	struct beside *b = &n->beside;
	struct endpoint_config out = { .make = MAKE_UROCE,
				       .type = c->beside == BESIDE_UC ? QP_TYPE_UC : QP_TYPE_UD,
				       .peer = plan->to,
				       .peer_qpn = endpoint_qpn(to),
				       .depth = BESIDE_DEPTH,
				       .mtu = c->mtu };
	struct endpoint_config in = out;

	in.peer = plan->from;
	in.peer_qpn = endpoint_qpn(from);
	*b = (struct beside){ .from = from,
			      .to = to,
			      .type = out.type,
			      .size = c->mtu,
			      .ordered = c->reorder <= 0,
			      .source_at = from->endpoints * endpoint_memory(c),
			      .sink_at = to->endpoints * endpoint_memory(c),
			      .source_key = from->key,
			      .sink_key = to->key };
	b->every = (nanotime)(b->size * 8e9 * BESIDE_TENTH / c->rate);
	b->out = endpoint_add(from, &out);
	b->in = endpoint_add(to, &in);
	b->out->beside = b;
	b->in->beside = b;
}

static void make_side(struct connects *s, struct connects_side *side, struct host *h,
		      const struct scenario_config *c, const struct endpoint_config *is)
{
	uint32_t at = h->endpoints * endpoint_memory(c);

	*side = (struct connects_side){ .host = h,
					.source_at = at,
					.sink_at = at + (uint32_t)connects_memory() / 2,
					.key = h->key };
	side->e = endpoint_add(h, is);
	side->e->connects = s;
}

static void connect_askers(struct net *n, const struct scenario_config *c, const struct plan *plan)
{
	struct host *from = &n->host[plan->from], *to = &n->host[plan->to];
	struct endpoint_config is = { .make = MAKE_UROCE,
				      .type = QP_TYPE_UD,
				      .peer = plan->to,
				      .depth = CONNECTS_DEPTH,
				      .mtu = c->mtu };

	make_side(&n->connects, &n->connects.asker, from, c, &is);
	is.peer = plan->from;
	make_side(&n->connects, &n->connects.listener, to, c, &is);
}

void topology_make(struct net *n, const struct scenario_config *c, const struct plan *plan,
		   uint32_t transfers)
{
	*n = (struct net){ .transfers = transfers };
	fabric_init(&n->fabric, c->seed);
	for (uint32_t i = 0; i < transfers + (c->beside != BESIDE_NONE); i++)
		n->hosts = MAX_OF(n->hosts, MAX_OF(plan[i].from, plan[i].to) + 1);
	make_hosts(n, c, plan);
	if (c->scenario == SCENARIO_BOTTLENECK)
		make_bottleneck(n, c);
	else
		make_star(n, c, c->opcode == WORK_RDMA_READ ? plan[0].from : plan[0].to);
	n->transfer = must(calloc(transfers, sizeof(*n->transfer)));
	for (uint32_t i = 0; i < transfers; i++) {
		n->transfer[i].number = i;
		connect(n, c, &n->transfer[i], &plan[i]);
	}
	if (c->beside == BESIDE_CM)
		connect_askers(n, c, &plan[transfers]);
	else if (c->beside != BESIDE_NONE)
		connect_beside(n, c, &plan[transfers]);
}

void topology_free(struct net *n)
{
	for (uint32_t i = 0; i < n->hosts; i++)
		host_free(&n->host[i]);
	for (uint32_t i = 0; i < n->switches; i++)
		switch_free(&n->node[i]);
	free(n->host);
	free(n->transfer);
	measure_free(&n->measure);
	fabric_free(&n->fabric);
}
