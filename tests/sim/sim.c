/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run: makes and connects the nodes, then moves the time from one event to the next. Frames that
 * arrived are received in bursts, deadlines are handled, programs post, and queue pairs send in
 * turns.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "lossy.h"
#include "stream.h"
#include "transport/path.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define NODES 2u
#define PD    7u
#define ACCESS_ALL                                                                              \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | \
	 ACCESS_FLUSH_GLOBAL)
#define LINE_BACKLOG  (20 * TIME_US) /* time of waiting frames: then the port is full */
#define NO_PROGRESS   (60 * TIME_S)
#define POLLS_AT_MOST UINT64_C(2000000000)

struct world {
	struct sim_config config;
	struct workload load;
	struct node node[NODES];
	struct path path[NODES]; /* of each node's queue pairs to the other */
	struct link link;
	struct stream stream[2 * SIM_PAIRS]; /* index: 2 * pair + sending node */
	uint32_t pairs;
	nanotime now;
	nanotime wake[NODES];
	double unsent; /* probability that the port accepts no more frames */
	bool lazy; /* receive requests are posted late */
	bool ipv6;
	struct gid gid[NODES];
};

static double or_chance(struct prng *r, double given, double often, double most)
{
	double drawn = prng_chance(r, often) ? most * prng_below(r, 1000) / 1000 : 0;

	return given >= 0 ? given : drawn;
}

static void choose(struct world *w, const struct sim_config *c)
{
	struct prng *r = &w->load.prng;

	prng_seed(r, c->seed);
	w->config = *c;
	w->config.loss = or_chance(r, c->loss, 0.6, 0.03);
	w->config.duplicate = or_chance(r, c->duplicate, 0.4, 0.03);
	w->config.reorder = or_chance(r, c->reorder, 0.4, 0.03);
	w->config.corrupt = or_chance(r, c->corrupt, 0.3, 0.01);
	w->config.faults = or_chance(r, c->faults, 0.3, 0.5);
	w->config.fail_copies = or_chance(r, c->fail_copies, 0.1, 0.002);
	w->config.xrc = or_chance(r, c->xrc, 0.4, 1);
	w->config.delay = c->delay >= 0 ? c->delay : prng_between(r, 200, 20000);
	w->pairs = c->qps != 0 ? MIN_OF(c->qps, SIM_PAIRS) : prng_between(r, 1, 6);
	w->unsent = c->bench || prng_below(r, 2) ? 0 : 0.002;
	w->lazy = !c->bench && prng_below(r, 2);
	w->ipv6 = prng_below(r, 2);
	w->load.config = &w->config;
	w->load.messages = c->messages;
	w->load.mtu = c->bench ? 1024 : 256u << prng_below(r, 5);
	w->load.max_message =
		c->bench ? 1024 : MIN_OF(w->load.mtu * prng_between(r, 4, 24), 40000u);
	w->load.slot_octets =
		(uint32_t)round_up(2 * GUARD_OCTETS + w->load.max_message + 8 * LIMIT_SGE, 64);
	w->load.lossy = w->config.loss + w->config.corrupt > 0;
	w->load.hopeless = w->config.loss + w->config.corrupt > 0.06;
}

/* Nodes, memory, keys. */

static uint64_t choose_base(struct prng *r, size_t size)
{
	/* Sometimes memory ends at the highest address. */
	if (prng_below(r, 4) == 0)
		return 0 - (uint64_t)size;
	return prng_next(r) >> 12 & ~UINT64_C(7);
}

static void make_nodes(struct world *w)
{
	struct prng *r = &w->load.prng;
	size_t size = round_up(stream_memory(&w->load, w->pairs), 4096);

	for (uint32_t i = 0; i < NODES; i++) {
		struct node *n = &w->node[i];

		node_init(n, i == 0 ? "A" : "B", size, w->pairs, prng_next(r));
		path_init(&w->path[i]);
		memset(n->memory, GUARD, size);
		memset(n->memory, 0, sizeof(uint64_t));
		n->keeps = (w->config.seed + i) % 4 != 0; /* mostly, as an engine with room */
		n->delay_copies = !w->config.bench && prng_below(r, 2);
		n->copy_delay = prng_between(r, 1, 10000);
		n->fail_copies = w->config.fail_copies;
		if (w->ipv6)
			w->gid[i] =
				(struct gid){ { 0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)(1 + i) } };
		else
			w->gid[i] = (struct gid){
				{ [10] = 0xff, [11] = 0xff, 10, 0, 0, (uint8_t)(1 + i) }
			};
	}
}

static struct node_qp *make_qp(struct world *w, uint32_t node, uint32_t pair, uint32_t type)
{
	static const uint8_t elements[] = { 1, 4, 32 };
	struct prng *r = &w->load.prng;
	bool target = type == QP_TYPE_XRC_RECV;
	struct qp_caps caps = { .type = type,
				.qpn = (prng_next(r) & 0xffff) << 8 | (pair + 2),
				.pd = PD,
				.handle = pair,
				.max_send_wr = target		 ? 0
					       : w->config.bench ? STREAM_JOBS
								 : prng_between(r, 1, STREAM_JOBS),
				.max_send_sge = elements[prng_below(r, 3)],
				.max_recv_sge = elements[prng_below(r, 3)],
				.max_inline = prng_below(r, 2) * prng_between(r, 1, LIMIT_INLINE),
				.max_rd_atomic = 16,
				.port_mtu = 5,
				.has_srq = target };

	return node_qp_add(&w->node[node], &caps, w->node[node].delay_copies);
}

static void connect_one(struct world *w, struct node_qp *q, struct node_qp *to, uint32_t from_node,
			struct qp_attributes *a)
{
	struct {
		uint32_t state, mask;
	} steps[] = {
		{ QP_STATE_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS },
		{ QP_STATE_RTR, QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
					QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER },
		{ QP_STATE_RTS, QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
					QP_ATTR_SQ_PSN | QP_ATTR_MAX_RD_ATOMIC },
	};
	/* An XRC connection is one-directional and needs half of the attributes. */
	if (q->caps.type == QP_TYPE_XRC_SEND)
		steps[1].mask &= ~(uint32_t)(QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	if (q->caps.type == QP_TYPE_XRC_RECV)
		steps[2].mask = QP_ATTR_TIMEOUT | QP_ATTR_SQ_PSN;
	const struct address_vector av = {
		.src_gid = w->gid[from_node],
		.dst_gid = w->gid[1 - from_node],
		.src_mac = { { 2, 0, 0, 0, 0, (uint8_t)from_node } },
		.dst_mac = { { 2, 0, 0, 0, 0, (uint8_t)(1 - from_node) } },
		.hop_limit = 64,
		.src_port = flow_source_port(0, q->caps.qpn, to->caps.qpn),
	};

	flow_init(&q->flow, &av);
	qp_give_path(q->core, &w->path[from_node]);
	a->dest_qpn = to->caps.qpn;
	a->path = (struct qp_path){ .dgid = av.dst_gid,
				    .sgid = av.src_gid,
				    .hop_limit = 64,
				    .port_num = 1,
				    .is_global = 1 };
	for (uint32_t i = 0; i < ARRAY_SIZE(steps); i++) {
		a->state = steps[i].state;
		if (node_modify(q, a, steps[i].mask | QP_ATTR_STATE, 0) != 0)
			wrong(&w->load, "the queue pair does not reach state %u", a->state);
	}
}

/* Often close to the wrap of the PSNs. */
static uint32_t choose_psn(struct prng *r)
{
	return prng_below(r, 2) ? 0xffffff - prng_below(r, 200) : prng_next(r) & 0xffffff;
}

static void connect_pair(struct world *w, uint32_t pair)
{
	struct prng *r = &w->load.prng;
	bool xrc = !w->config.bench && prng_chance(r, w->config.xrc);
	struct node_qp *q[NODES] = { make_qp(w, 0, pair, xrc ? QP_TYPE_XRC_SEND : QP_TYPE_RC),
				     make_qp(w, 1, pair, xrc ? QP_TYPE_XRC_RECV : QP_TYPE_RC) };
	uint32_t psn[NODES] = { choose_psn(r), choose_psn(r) };
	uint8_t depth[NODES] = { (uint8_t)prng_between(r, 1, 16), (uint8_t)prng_between(r, 1, 16) };
	struct qp_attributes a = { .path_mtu = (uint32_t)__builtin_ctz(w->load.mtu) - 7,
				   .access_flags = ACCESS_ALL,
				   .min_rnr_timer = (uint8_t)prng_between(r, 1, 10),
				   .port_num = 1,
				   .timeout = (uint8_t)prng_between(r, 7, 11),
				   .retry_cnt = 7,
				   .rnr_retry = 7 };

	for (uint32_t i = 0; i < NODES; i++) {
		struct stream *s = &w->stream[2 * pair + i];

		a.sq_psn = psn[i];
		a.rq_psn = psn[1 - i];
		a.max_rd_atomic = (uint8_t)prng_between(r, 1, depth[1 - i]);
		a.max_dest_rd_atomic = depth[i];
		connect_one(w, q[i], q[1 - i], i, &a);
		stream_init(s, &w->load, q[i], q[1 - i], pair, i);
		s->back = &w->stream[2 * pair + 1 - i];
		s->anything_may_fail = w->config.fail_copies > 0;
		if (xrc && i == 0)
			s->srq = node_srq_add(&w->node[1], (prng_next(r) & 0xffff) << 8 | pair, PD,
					      q[1]->caps.max_recv_sge);
	}
	if (prng_chance(r, w->config.faults)) {
		struct stream *s = &w->stream[2 * pair + (xrc ? 0 : prng_below(r, 2))];

		s->fault = (enum fault)prng_between(r, 1, FAULTS - 1);
		s->fault_at = prng_below(r, w->load.messages);
		s->may_fail = s->back->may_fail = true;
	}
}

static void make_keys(struct world *w)
{
	struct prng *r = &w->load.prng;
	uint64_t base[NODES];
	uint32_t key[NODES];

	for (uint32_t i = 0; i < NODES; i++) {
		struct node *n = &w->node[i];

		base[i] = choose_base(r, n->size);
		/*
		 * Pieces of whole pages, so that the counter and each atomic's word lie within one.
		 */
		key[i] = node_register(n, 0, n->size, base[i], PD, ACCESS_ALL,
				       n->size % (3 * 4096) == 0 ? 3
				       : n->size % 8192 == 0	 ? 2
								 : 1);
	}
	for (uint32_t i = 0; i < 2 * w->pairs; i++) {
		struct stream *s = &w->stream[i];

		s->local_key = key[s->from_node];
		s->local_base = base[s->from_node];
		s->remote_key = key[1 - s->from_node];
		s->remote_base = base[1 - s->from_node];
	}
}

/* The work of a node in one poll. */

static void drain(struct world *w, struct node_qp *q, uint32_t node, uint32_t pair)
{
	struct node_completion c;

	while (node_take(q, &c)) {
		if (c.from_receive)
			stream_received(&w->stream[2 * pair + 1 - node], &c.c);
		else
			stream_sent(&w->stream[2 * pair + node], &c.c, w->now);
	}
}

static void arrived(struct world *w, const struct frame *f, uint32_t to)
{
	static const struct decode_options options = { .check_icrc = true };
	struct node *n = &w->node[to];
	struct packet p;
	enum reason r = packet_decode(&p, f->octets + f->start, f->length, &options);
	uint32_t pair;

	if (r != REASON_NONE) {
		w->load.result->reasons[r]++;
		return;
	}
	pair = (p.dest_qpn & 0xff) - 2;
	if (pair >= n->qps || n->qp[pair]->caps.qpn != p.dest_qpn) {
		w->load.result->reasons[REASON_QPN_UNKNOWN]++;
		return;
	}
	w->load.result->reasons[node_received(n->qp[pair], &p, w->now)]++;
	drain(w, n->qp[pair], to, pair);
}

/* Writes the headers just before the payload. */
static void frame_build(struct node_qp *q, struct frame *f, const struct packet *p)
{
	uint8_t headers[PACKET_HEADER_MAX];
	size_t n = packet_encode(headers, &q->flow, p, q->identification++);

	if (p->payload_length > 0 && p->payload != f->octets + FRAME_HEADROOM)
		memcpy(f->octets + FRAME_HEADROOM, p->payload, p->payload_length);
	f->start = (uint16_t)(FRAME_HEADROOM - n);
	memcpy(f->octets + f->start, headers, n);
	f->length = (uint16_t)packet_seal(f->octets + f->start, &q->flow, n, p->payload_length);
}

/* One turn of a queue pair. False: it has more to send. */
static bool turn(struct world *w, struct node_qp *q, uint32_t node)
{
	struct prng *r = &w->load.prng;
	struct packet p[LIMIT_TURN];
	struct frame *f[LIMIT_TURN];
	uint32_t n = 0, sent;
	bool silent = false;

	while (n < LIMIT_TURN && (f[n] = link_buffer(&w->link)) != NULL) {
		uint8_t *payload = f[n]->octets + FRAME_HEADROOM;

		if (!(n > 0 && node_next_alike(q, w->now, &p[n - 1], &p[n], payload)) &&
		    !node_next(q, w->now, &p[n], payload)) {
			link_return(&w->link, f[n]);
			silent = true;
			break;
		}
		if (p[n].payload_length > 0 && prng_chance(r, w->config.fail_copies)) {
			link_return(&w->link, f[n]);
			qp_gather_failed(q->core, &p[n]);
			node_collect(q, w->now);
			break;
		}
		frame_build(q, f[n], &p[n]);
		n++;
	}
	sent = prng_chance(r, w->unsent) ? prng_below(r, n + 1) : n;
	for (uint32_t i = 0; i < sent; i++)
		link_send(&w->link, node, f[i], w->now);
	for (uint32_t i = n; i-- > sent;) { /* the port is full: give back the last one first */
		link_return(&w->link, f[i]);
		qp_unsent(q->core, &p[i], w->now);
	}
	if (sent < n)
		node_collect(q, w->now);
	return silent && sent == n;
}

static void send_turns(struct world *w, uint32_t node)
{
	struct node *n = &w->node[node];
	uint32_t first = prng_below(&w->load.prng, n->qps);

	for (uint32_t i = 0; i < n->qps; i++) {
		uint32_t pair = (first + i) % n->qps;
		struct node_qp *q = n->qp[pair];

		if (w->link.line_free_at[node] > w->now + LINE_BACKLOG) {
			w->wake[node] = time_earlier(w->wake[node],
						     w->link.line_free_at[node] - LINE_BACKLOG / 2);
			return;
		}
		if (!qp_has_packet(q->core))
			continue;
		if (!turn(w, q, node))
			w->wake[node] = w->now;
		drain(w, q, node, pair);
	}
}

static void programs_run(struct world *w, uint32_t node, uint32_t pair)
{
	struct stream *out = &w->stream[2 * pair + node], *in = &w->stream[2 * pair + 1 - node];
	struct node_qp *q = w->node[node].qp[pair];

	stream_post_receives(in, w->lazy);
	if (w->config.bench || prng_below(&w->load.prng, 2))
		stream_post(out, w->now);
	drain(w, q, node, pair);
	/* Requests remain to be posted, so the program runs again. */
	if (!stream_done(out) || !stream_done(in))
		w->wake[node] = time_earlier(w->wake[node],
					     w->now + 1000 + prng_below(&w->load.prng, 50000));
}

static void node_poll(struct world *w, uint32_t node)
{
	struct node *n = &w->node[node];

	w->wake[node] = TIME_NEVER;
	for (uint32_t pair = 0; pair < n->qps; pair++) {
		struct node_qp *q = n->qp[pair];

		node_settle(q, w->now, w->now);
		node_expire(q, w->now);
		drain(w, q, node, pair);
		programs_run(w, node, pair);
	}
	send_turns(w, node);
	for (uint32_t pair = 0; pair < n->qps; pair++) {
		struct node_qp *q = n->qp[pair];
		nanotime t = time_earlier(q->deadline, node_copy_due(q));

		if (q->not_before != 0)
			t = time_earlier(t, q->not_before);
		w->wake[node] = time_earlier(w->wake[node], t);
	}
	if (n->fault[0] != '\0')
		wrong(&w->load, "node %s: %s", n->name, n->fault);
}

/* The run. */

static bool all_done(const struct world *w)
{
	for (uint32_t i = 0; i < 2 * w->pairs; i++)
		if (!stream_done(&w->stream[i]))
			return false;
	return true;
}

static void say_missing(struct world *w, const char *what)
{
	for (uint32_t i = 0; i < 2 * w->pairs; i++) {
		const struct stream *s = &w->stream[i];

		if (stream_done(s))
			continue;
		wrong(&w->load,
		      "%s: node %s pair %u: %u of %u requests posted, %u completed, %u retired; "
		      "state %d, the peer's %d; %u receives posted there, %u done; deadline %lld",
		      what, s->from->node->name, s->pair, s->posted, s->messages, s->completed,
		      qp_retired(s->from->core), qp_state(s->from->core), qp_state(s->to->core),
		      s->receives_posted, s->receives_done, (long long)s->from->deadline);
	}
}

static void step(struct world *w)
{
	nanotime next = time_earlier(link_next(&w->link), time_earlier(w->wake[0], w->wake[1]));
	uint32_t first = prng_below(&w->load.prng, NODES), to;
	struct frame *f;

	if (next == TIME_NEVER) {
		say_missing(w, "there is nothing to wait for");
		return;
	}
	w->now = MAX_OF(w->now, next) + prng_below(&w->load.prng, 2000);
	while ((f = link_take(&w->link, w->now, &to)) != NULL) {
		arrived(w, f, to);
		link_taken(&w->link, f);
	}
	node_poll(w, first);
	node_poll(w, 1 - first);
	if (w->now > w->load.last_progress + NO_PROGRESS)
		say_missing(w, "no progress for 60 s");
}

/* Delivers what is still under way; after that no other octet may have changed. */
static void finish(struct world *w)
{
	bool whole = w->load.result->broken == 0;
	struct frame *f;
	uint32_t to;

	while ((f = link_take(&w->link, TIME_NEVER - 1, &to)) != NULL) {
		arrived(w, f, to);
		link_taken(&w->link, f);
	}
	for (uint32_t i = 0; i < NODES; i++)
		for (uint32_t pair = 0; pair < w->pairs; pair++) {
			node_settle(w->node[i].qp[pair], TIME_NEVER, w->now);
			drain(w, w->node[i].qp[pair], i, pair);
		}
	for (uint32_t i = 0; i < 2 * w->pairs; i++)
		stream_end(&w->stream[i]);
	for (uint32_t i = 0; i < NODES; i++) {
		const uint8_t *m = w->node[i].memory;
		uint64_t counter;

		memcpy(&counter, m, sizeof(counter));
		if (whole && counter != w->load.added[i])
			wrong(&w->load, "node %s: the atomics' sum is wrong", w->node[i].name);
		if (m[8] != GUARD || memcmp(m + 8, m + 9, w->node[i].size - 9) != 0)
			wrong(&w->load, "node %s: octets outside of all messages were written",
			      w->node[i].name);
	}
}

struct sim_config sim_defaults(void)
{
	return (struct sim_config){ .seed = 1,
				    .messages = 500,
				    .loss = SIM_FROM_SEED,
				    .duplicate = SIM_FROM_SEED,
				    .reorder = SIM_FROM_SEED,
				    .corrupt = SIM_FROM_SEED,
				    .delay = SIM_FROM_SEED,
				    .faults = SIM_FROM_SEED,
				    .fail_copies = SIM_FROM_SEED,
				    .xrc = SIM_FROM_SEED };
}

static void world_begin(struct world *w, const struct sim_config *c)
{
	struct impairment bad;

	choose(w, c);
	bad = (struct impairment){ .loss = w->config.loss,
				   .duplicate = w->config.duplicate,
				   .reorder = w->config.reorder,
				   .corrupt = w->config.corrupt,
				   .delay = (nanotime)w->config.delay };
	link_init(&w->link, &bad, prng_next(&w->load.prng));
	if (c->pcap != NULL && !link_capture(&w->link, c->pcap))
		wrong(&w->load, "cannot write %s", c->pcap);
	w->load.scratch = malloc(w->load.slot_octets);
	if (w->load.scratch == NULL)
		abort();
	make_nodes(w);
	for (uint32_t i = 0; i < w->pairs; i++)
		connect_pair(w, i);
	make_keys(w);
}

void sim_run(const struct sim_config *c, struct sim_result *r)
{
	struct world *w;

	if (c->unreliable) {
		lossy_run(c, r);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		abort();
	*r = (struct sim_result){ 0 };
	w->load.result = r;
	world_begin(w, c);
	for (uint64_t polls = 0; w->load.why[0] == '\0' && !all_done(w); polls++) {
		if (polls > POLLS_AT_MOST)
			say_missing(w, "the run does not end");
		step(w);
	}
	if (w->load.why[0] == '\0')
		finish(w);
	r->ok = w->load.why[0] == '\0';
	memcpy(r->why, w->load.why, sizeof(r->why));
	r->link = w->link.counts;
	r->time = w->now;
	free(w->load.scratch);
	for (uint32_t i = 0; i < NODES; i++) {
		r->alike += w->node[i].alike;
		node_free(&w->node[i]);
	}
	link_free(&w->link);
	free(w);
}
