/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "plot.h"
#include "topology.h"

#define DRAIN	     (30 * TIME_S) /* time for messages under way at the end */
#define MEMORY_MOST  (UINT64_C(1) << 31) /* octets of one host */
#define QPS_MOST     65536u
#define WIRE_HEADERS 74u /* octets of a packet around its payload: Ethernet to BTH, RETH, ICRC */
#define KIB	     1024.0

static const char *const names[SCENARIOS] = { [SCENARIO_INCAST] = "incast",
					      [SCENARIO_BOTTLENECK] = "bottleneck",
					      [SCENARIO_REORDER] = "reorder",
					      [SCENARIO_MANY] = "many" };

static const char *const makes[PEERS] = { [PEERS_UROCE] = "uroce",
					  [PEERS_LINUX] = "linux",
					  [PEERS_DCQCN] = "dcqcn",
					  [PEERS_MIXED] = "mixed" };

const char *scenario_name(enum scenario s)
{
	return names[s];
}

const char *scenario_peers_name(enum peers p)
{
	return makes[p];
}

struct scenario_config scenario_defaults(enum scenario s)
{
	struct scenario_config c = { .scenario = s,
				     .seed = 1,
				     .senders = 1,
				     .qps = 1,
				     .size = 65536,
				     .depth = 2,
				     .mtu = 4096,
				     .timeout = 14,
				     .rate = 100e9,
				     .delay = 1000,
				     .trunk_delay = 1000,
				     .buffer = 256 * KIB,
				     .ecn = 64 * KIB,
				     .places = 32,
				     .ring = 2048,
				     .packet_time = 50,
				     .time = 50e6 };

	if (s == SCENARIO_INCAST) {
		c.senders = 64;
	} else if (s == SCENARIO_BOTTLENECK) {
		c.senders = 4;
		c.rate = 10e9;
	} else if (s == SCENARIO_REORDER) {
		c.reorder = 0.01;
		c.depth = 16;
		c.buffer = 16 * 1024 * KIB;
	} else if (s == SCENARIO_MANY) {
		c.qps = 1024;
		c.size = 8;
		c.depth = 16;
		c.buffer = 16 * 1024 * KIB;
		c.packet_time = 100;
		c.ring = 1024;
		c.refuses = 0.001;
		c.refuses_for = 50e3;
		c.time = 20e6;
	}
	return c;
}

const char *scenario_refuses(const struct scenario_config *c)
{
	uint64_t transfers = (uint64_t)c->senders * c->qps;

	if (c->beside != BESIDE_NONE && c->peers != PEERS_UROCE && c->peers != PEERS_MIXED)
		return "--beside needs --peers uroce or mixed";
	if (c->peers != PEERS_UROCE && c->opcode != WORK_RDMA_WRITE)
		return "peers of other makes only have --operation write";
	if (transfers > QPS_MOST)
		return "senders times queue pairs must be at most 65536";
	if (transfers * transfer_memory(c->size, c->depth) > MEMORY_MOST)
		return "queue pairs times depth times size must be at most 2 GiB";
	if (c->ecn > 0 && c->ecn >= c->buffer)
		return "--ecn must be less than --buffer";
	return NULL;
}

static struct plan *make_plan(const struct scenario_config *c)
{
	struct plan *plan = calloc((size_t)c->senders * c->qps + 1, sizeof(*plan));
	uint32_t n = 0, pairs = c->senders + (c->beside != BESIDE_NONE);

	if (plan == NULL)
		abort();
	for (uint32_t q = 0; q < c->qps; q++)
		for (uint32_t i = 0; i < c->senders; i++, n++)
			plan[n] = c->scenario == SCENARIO_BOTTLENECK
					  ? (struct plan){ .from = i, .to = pairs + i }
					  : (struct plan){ .from = i + 1, .to = 0 };
	/* the additional traffic has a sender of its own */
	plan[n] = c->scenario == SCENARIO_BOTTLENECK
			  ? (struct plan){ .from = c->senders, .to = pairs + c->senders }
			  : (struct plan){ .from = c->senders + 1, .to = 0 };
	return plan;
}

/* The time of a message, with all messages before it, if all queue pairs share the rate equally. */
static double ideal(const struct net *n, const struct scenario_config *c)
{
	uint32_t packets = MAX_OF(1u, (c->size + c->mtu - 1) / c->mtu);
	double wire = c->size + (double)packets * (WIRE_HEADERS + LINE_GAP);
	double trip = c->scenario == SCENARIO_BOTTLENECK ? 4 * c->delay + 2 * c->trunk_delay
							 : 4 * c->delay;

	return (double)n->transfers * c->depth * wire * 8e9 / c->rate + trip;
}

static bool all_done(const struct net *n)
{
	for (uint32_t i = 0; i < n->transfers; i++)
		if (!transfer_done(&n->transfer[i]))
			return false;
	return connects_done(&n->connects);
}

/* What happens when the measured time begins. */
struct killing {
	struct event event;
	struct net *net;
	const struct scenario_config *config;
};

static void kill_peers(struct event *e, struct fabric *f)
{
	struct killing *k = container_of_type(e, struct killing, event);

	for (uint32_t i = 0; i < k->net->transfers; i++)
		if (i < k->config->gone)
			transfer_lose_peer(&k->net->transfer[i]);
		else if (k->config->late)
			transfer_start(&k->net->transfer[i], f);
}

static void run(struct net *n, const struct scenario_config *c, struct plot *plot)
{
	struct fabric *f = &n->fabric;
	nanotime end = (nanotime)c->time;
	struct killing killing = { .event.happen = kill_peers, .net = n, .config = c };

	n->measure.begin = end / 10;
	n->measure.end = end;
	for (uint32_t i = 0; i < n->transfers; i++)
		if (i < c->gone || !c->late)
			transfer_start(&n->transfer[i], f);
	fabric_at(f, &killing.event, n->measure.begin);
	if (c->beside == BESIDE_CM)
		connects_start(&n->connects, f);
	else if (c->beside != BESIDE_NONE)
		beside_start(&n->beside, f);
	for (uint32_t i = 1; i <= PLOT_SAMPLES && f->why[0] == '\0'; i++) {
		while (f->why[0] == '\0' && fabric_step(f, end * i / PLOT_SAMPLES))
			;
		plot_sample(plot, n, f->now);
	}
	for (uint32_t i = 0; i < n->transfers; i++)
		n->transfer[i].stopped = true;
	n->beside.stopped = n->connects.stopped = true;
}

/* Lets the messages that are under way at the end complete. */
static void drain(struct net *n, const struct scenario_config *c)
{
	struct fabric *f = &n->fabric;
	uint64_t steps = 0;

	while (f->why[0] == '\0' && fabric_step(f, n->measure.end + DRAIN))
		if (++steps % 1024 == 0 && all_done(n))
			break;
	for (uint32_t i = 0; i < n->transfers; i++)
		transfer_end(&n->transfer[i], f);
	if (c->beside == BESIDE_CM)
		connects_end(&n->connects, f);
	else if (c->beside != BESIDE_NONE)
		beside_end(&n->beside, f);
}

/* Messages that should be complete by now count with their age. */
static void count_late(struct net *n, double due)
{
	for (uint32_t i = 0; i < n->transfers; i++) {
		const struct transfer *t = &n->transfer[i];

		for (uint32_t m = t->completed; m != t->posted; m++)
			if ((double)(n->measure.end - t->posted_at[m % t->depth]) > due)
				measure_pending(&n->measure, t->posted_at[m % t->depth]);
	}
}

static void sum_transfers(const struct net *n, const struct scenario_config *c,
			  struct scenario_result *r)
{
	double *share = calloc(n->transfers, sizeof(*share)), octets = 0, left = 0;
	double seconds = (double)(n->measure.end - n->measure.begin) / 1e9;

	if (share == NULL)
		abort();
	for (uint32_t i = 0; i < n->transfers; i++) {
		share[i] = (double)n->transfer[i].octets;
		octets += share[i];
		left += i >= c->gone ? share[i] : 0;
		r->timeouts += endpoint_timeouts(n->transfer[i].out);
	}
	r->use = octets * 8 / seconds / c->rate;
	r->left = left * 8 / seconds / c->rate;
	r->fairness = measure_fairness(share, n->transfers);
	free(share);
}

static void sum_hosts(const struct net *n, struct scenario_result *r)
{
	uint64_t again = 0;

	for (uint32_t i = 0; i < n->hosts; i++) {
		const struct host_counts *h = &n->host[i].counts;

		r->packets += h->sent;
		again += h->again;
		r->overflowed += h->overflowed;
		r->refused += h->refused;
		r->cnps += h->cnps;
	}
	r->again = r->packets > 0 ? (double)again / (double)r->packets : 0;
}

static void sum_bottleneck(const struct net *n, struct scenario_result *r)
{
	const struct line_counts *b = &n->bottleneck->counts;

	for (uint32_t s = 0; s < n->switches; s++)
		for (uint32_t i = 0; i < n->node[s].ports; i++)
			r->marked += n->node[s].port[i].counts.marked;
	r->dropped = b->frames > 0 ? (double)b->dropped / (double)(b->frames + b->dropped) : 0;
	r->longest = b->longest;
}

void scenario_run(const struct scenario_config *c, struct scenario_result *r)
{
	struct plan *plan = make_plan(c);
	struct plot plot = { 0 };
	struct net n;

	*r = (struct scenario_result){ 0 };
	topology_make(&n, c, plan, c->senders * c->qps);
	run(&n, c, &plot);
	r->ideal = ideal(&n, c);
	r->messages = n.measure.messages;
	r->rate = (double)r->messages * 1e9 / (double)(n.measure.end - n.measure.begin);
	count_late(&n, r->ideal);
	r->median = measure_quantile(&n.measure, 0.5);
	r->slow = measure_quantile(&n.measure, 0.99);
	r->slowest = measure_quantile(&n.measure, 0.999);
	sum_transfers(&n, c, r);
	drain(&n, c);
	sum_hosts(&n, r);
	sum_bottleneck(&n, r);
	r->failed = n.measure.failed;
	r->last_failure = n.measure.last_failure;
	r->beside_sent = n.beside.posted + n.connects.begun;
	r->beside_arrived = n.beside.arrived + n.connects.listener.established;
	if (n.measure.first_failure[0] != '\0')
		fabric_wrong(&n.fabric, "%s", n.measure.first_failure);
	r->ok = n.fabric.why[0] == '\0';
	memcpy(r->why, n.fabric.why, sizeof(r->why));
	if (c->svg != NULL && !plot_write(&plot, c, c->svg)) {
		r->ok = false;
		snprintf(r->why, sizeof(r->why), "cannot write %s", c->svg);
	}
	topology_free(&n);
	free(plan);
}
