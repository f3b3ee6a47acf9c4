/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "lossy.h"
#include "node.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define NODES	      2u
#define PD	      7u
#define BASE	      UINT64_C(0x7f0000000000)
#define QKEY	      0x1234u
#define GUARD	      0xa5u
#define EDGE	      64u /* guard octets on both sides of a slot's buffer */
#define RECEIVES      64u
#define TARGETS	      256u /* for WRITEs: a later WRITE must not disturb a check */
#define MESSAGE_MOST  6000u
#define SLOT	      (2 * EDGE + GRH_LENGTH + MESSAGE_MOST)
#define SOURCES	      64u
#define SLOTS	      (SOURCES + RECEIVES + TARGETS)
#define LINE_BACKLOG  (20 * TIME_US)
#define STEPS_AT_MOST UINT64_C(50000000)

/* One direction of a pair. */
struct lane {
	struct node_qp *from, *to;
	uint64_t salt; /* the seed of its messages */
	size_t source_slots, receive_slots, target_slots; /* offsets in the nodes' memories */
	uint32_t posted, completed;
	uint32_t receives_posted, receives_done;
	uint32_t next; /* the number of the next message if nothing is lost */
	bool stopped; /* the send queue stopped: the other requests are flushed */
};

struct world {
	struct sim_config config;
	struct sim_result *result;
	struct prng prng;
	struct node node[NODES];
	struct link link;
	struct lane lane[2 * SIM_PAIRS]; /* index: 2 * pair + sending node */
	uint32_t key[NODES];
	uint32_t pairs, mtu;
	nanotime now, wake[NODES];
	bool lazy, perfect;
	uint8_t scratch[MESSAGE_MOST];
};

#define wrong(w, ...)                                                                      \
	do {                                                                               \
		if ((w)->result->why[0] == '\0')                                           \
			snprintf((w)->result->why, sizeof((w)->result->why), __VA_ARGS__); \
	} while (0)

/* Messages: a message follows from its lane and its number `id`. */

static uint64_t draw(const struct lane *l, uint32_t id, uint32_t what)
{
	uint64_t state = l->salt + (uint64_t)id * 16 + what;

	return splitmix(&state);
}

static uint32_t length_of(const struct world *w, const struct lane *l, uint32_t id)
{
	uint32_t most =
		l->from->caps.type == QP_TYPE_UD ? w->mtu : MIN_OF(6 * w->mtu, MESSAGE_MOST);
	uint64_t r = draw(l, id, 1);

	return r % 4 == 0 ? (uint32_t)(r >> 8) % 64 : (uint32_t)(r >> 8) % (most + 1);
}

static uint8_t opcode_of(const struct lane *l, uint32_t id)
{
	static const uint8_t of_uc[] = { WORK_SEND_WITH_IMM, WORK_RDMA_WRITE_WITH_IMM,
					 WORK_RDMA_WRITE };

	return l->from->caps.type == QP_TYPE_UD ? WORK_SEND_WITH_IMM : of_uc[draw(l, id, 2) % 3];
}

/* Whether its source is not registered: a local error. */
static bool is_bad(const struct world *w, const struct lane *l, uint32_t id)
{
	return w->config.faults > 0 && draw(l, id, 3) % 50 == 0;
}

static void make_octets(const struct lane *l, uint32_t id, uint32_t length, uint8_t *to)
{
	uint64_t state = draw(l, id, 4);

	for (uint32_t i = 0; i < length; i += 8) {
		uint64_t v = splitmix(&state);

		memcpy(to + i, &v, MIN_OF(8u, length - i));
	}
}

/* Posting. */

static void post_one(struct world *w, struct lane *l, uint32_t node)
{
	uint32_t id = l->posted++, length = length_of(w, l, id);
	size_t source = l->source_slots + (size_t)(id % SOURCES) * SLOT + EDGE;
	struct work_sge sge[2];
	struct send_work work = { .wr_id = id,
				  .opcode = opcode_of(l, id),
				  .flags = WORK_SIGNALED,
				  .imm = id,
				  .num_sge = 2 };
	uint32_t cut = length / 3;

	make_octets(l, id, length, l->from->node->memory + source);
	sge[0] = (struct work_sge){ BASE + source, cut, w->key[node] };
	sge[1] = (struct work_sge){ BASE + source + cut, length - cut, w->key[node] };
	if (is_bad(w, l, id)) {
		sge[1].lkey ^= 0x5500;
		sge[1].length = MAX_OF(sge[1].length, 1u); /* empty messages are not checked */
	}
	if (l->from->caps.type == QP_TYPE_UD) {
		work.remote_qpn = l->to->caps.qpn;
		work.remote_qkey = 0x80000000;
	} else {
		work.rkey = w->key[1 - node];
		work.remote_addr = BASE + l->target_slots + (size_t)(id % TARGETS) * SLOT + EDGE;
	}
	if (!node_post_send(l->from, &work, sge, w->now))
		wrong(w, "the send window was open and then full");
}

static void post_receives(struct world *w, struct lane *l, uint32_t node)
{
	uint32_t burst = w->lazy ? prng_below(&w->prng, 8) : RECEIVES;

	for (; burst > 0 && l->receives_posted - l->receives_done < RECEIVES; burst--) {
		size_t at =
			l->receive_slots + (size_t)(l->receives_posted % RECEIVES) * SLOT + EDGE;
		struct work_sge sge = { BASE + at, GRH_LENGTH + MESSAGE_MOST, w->key[1 - node] };

		node_post_receive(l->to, l->receives_posted++, &sge, 1);
	}
}

static void programs_run(struct world *w, struct lane *l, uint32_t node)
{
	uint32_t burst = prng_below(&w->prng, 8);

	post_receives(w, l, node);
	if (l->stopped && l->completed == l->posted) {
		struct qp_attributes a = { .state = QP_STATE_RTS };

		if (node_modify(l->from, &a, QP_ATTR_STATE, w->now) != 0)
			wrong(w, "lane %s: SQE does not resume", l->from->node->name);
		l->stopped = false;
	}
	/* A source buffer is not reused while its request is under way. */
	for (; burst > 0 && l->posted < w->config.messages && l->posted - l->completed < SOURCES &&
	       qp_window_slot(l->from->core) != NULL;
	     burst--)
		post_one(w, l, node);
}

/* Completions. */

static void sent(struct world *w, struct lane *l, const struct completion *c)
{
	uint32_t id = l->completed++, wanted = STATUS_SUCCESS;

	if (l->stopped)
		wanted = STATUS_WR_FLUSH_ERR;
	else if (is_bad(w, l, id))
		wanted = STATUS_LOC_PROT_ERR;
	if (c->wr_id != id || c->status != wanted)
		wrong(w, "node %s: request %u completed with %u, %u with %u was next",
		      l->from->node->name, (uint32_t)c->wr_id, c->status, id, wanted);
	l->stopped |= wanted != STATUS_SUCCESS;
	w->result->broken += wanted == STATUS_LOC_PROT_ERR;
	w->result->requests += wanted == STATUS_SUCCESS;
}

/* The network header of a datagram names its sender. */
static bool grh_right(const struct lane *l, const uint8_t *grh)
{
	const uint8_t *ip = l->from->flow.header + l->from->flow.l3;

	if (l->from->flow.ipv6)
		return grh[0] >> 4 == 6 && memcmp(grh + 8, ip + 8, 32) == 0;
	return grh[0] == 0 && memcmp(grh, grh + 1, 19) == 0 && grh[20] == 0x45 &&
	       memcmp(grh + 20 + 12, ip + 12, 8) == 0;
}

static void received(struct world *w, struct lane *l, const struct completion *c)
{
	uint32_t id = c->imm, length = length_of(w, l, id), index = l->receives_done++;
	bool ud = l->from->caps.type == QP_TYPE_UD, by_write = c->opcode != COMPLETION_RECV;
	size_t at = by_write ? l->target_slots + (size_t)(id % TARGETS) * SLOT
			     : l->receive_slots + (size_t)(index % RECEIVES) * SLOT;
	const uint8_t *octets = l->to->node->memory + at + EDGE;

	if (c->status != STATUS_SUCCESS || c->wr_id != index || id >= l->posted) {
		wrong(w, "node %s: receive %u status %u of message %u, where %u is next",
		      l->to->node->name, (uint32_t)c->wr_id, c->status, id, index);
		return;
	}
	if (c->byte_len != length + (ud ? GRH_LENGTH : 0) ||
	    by_write != (opcode_of(l, id) == WORK_RDMA_WRITE_WITH_IMM))
		wrong(w, "node %s: message %u of %u octets arrived with %u", l->to->node->name, id,
		      length, c->byte_len);
	if (ud && !grh_right(l, octets))
		wrong(w, "node %s: message %u has a wrong header", l->to->node->name, id);
	make_octets(l, id, length, w->scratch);
	if (memcmp(octets + (ud ? GRH_LENGTH : 0), w->scratch, length) != 0)
		wrong(w, "node %s: message %u arrived with wrong octets", l->to->node->name, id);
	while (w->perfect && l->next != id &&
	       (opcode_of(l, l->next) == WORK_RDMA_WRITE || is_bad(w, l, l->next)))
		l->next++; /* a WRITE without immediate data has no completion */
	if (w->perfect && w->config.faults == 0 && l->next != id)
		wrong(w, "node %s: message %u arrived where %u was next", l->to->node->name, id,
		      l->next);
	l->next = id + 1;
	w->result->messages++;
	w->result->octets += length;
}

static void drain(struct world *w, struct node_qp *q, uint32_t node, uint32_t pair)
{
	struct node_completion c;

	while (node_take(q, &c)) {
		if (c.from_receive)
			received(w, &w->lane[2 * pair + 1 - node], &c.c);
		else
			sent(w, &w->lane[2 * pair + node], &c.c);
	}
}

/* Packets. */

static void arrived(struct world *w, const struct frame *f, uint32_t to)
{
	static const struct decode_options options = { .check_icrc = true };
	static uint8_t octets[FRAME_OCTETS]; /* a copy, because the frame may arrive twice */
	struct node *n = &w->node[to];
	struct packet p;
	enum reason r;
	uint32_t pair;

	memcpy(octets, f->octets + f->start, f->length);
	r = packet_decode(&p, octets, f->length, &options);
	pair = r == REASON_NONE ? (p.dest_qpn & 0xff) - 2 : 0;
	if (r == REASON_NONE && (pair >= n->qps || n->qp[pair]->caps.qpn != p.dest_qpn))
		r = REASON_QPN_UNKNOWN;
	if (r == REASON_NONE) {
		packet_make_grh(octets, &p);
		r = node_received(n->qp[pair], &p, w->now);
		/* Checks completed copies before further copies are made. */
		drain(w, n->qp[pair], to, pair);
		post_receives(w, &w->lane[2 * pair + 1 - to], 1 - to);
	}
	w->result->reasons[r]++;
}

static void frame_build(struct node_qp *q, struct frame *f, const struct packet *p)
{
	uint8_t headers[PACKET_HEADER_MAX];
	size_t n = packet_encode(headers, &q->flow, p, q->identification++);

	f->start = (uint16_t)(FRAME_HEADROOM - n);
	memcpy(f->octets + f->start, headers, n);
	f->length = (uint16_t)packet_seal(f->octets + f->start, &q->flow, n, p->payload_length);
}

/* Sometimes the port does not take some of a turn's packets. */
static void turn(struct world *w, struct node_qp *q, uint32_t node)
{
	struct packet p[LIMIT_TURN];
	struct frame *f[LIMIT_TURN];
	uint32_t n = 0, taken;

	while (n < LIMIT_TURN && (f[n] = link_buffer(&w->link)) != NULL) {
		uint8_t *payload = f[n]->octets + FRAME_HEADROOM;

		if (!(n > 0 && node_next_alike(q, w->now, &p[n - 1], &p[n], payload)) &&
		    !node_next(q, w->now, &p[n], payload)) {
			link_return(&w->link, f[n]);
			break;
		}
		frame_build(q, f[n], &p[n]);
		n++;
	}
	taken = prng_chance(&w->prng, 0.05) ? prng_below(&w->prng, n + 1) : n;
	for (uint32_t i = n; i-- > taken;) {
		link_return(&w->link, f[i]);
		node_unsent(q, &p[i], w->now);
	}
	for (uint32_t i = 0; i < taken; i++) {
		link_send(&w->link, node, f[i], w->now);
		node_sent(q, &p[i], w->now);
	}
}

static void node_poll(struct world *w, uint32_t node)
{
	struct node *n = &w->node[node];
	bool busy = false;

	w->wake[node] = TIME_NEVER;
	for (uint32_t pair = 0; pair < n->qps; pair++) {
		struct node_qp *q = n->qp[pair];
		struct lane *l = &w->lane[2 * pair + node];

		while (node_copy_due(q) <= w->now) {
			node_settle_one(q, true, w->now);
			drain(w, q, node, pair);
		}
		programs_run(w, l, node);
		drain(w, q, node, pair);
		if (w->link.line_free_at[node] < w->now + LINE_BACKLOG && qp_has_packet(q->core))
			turn(w, q, node);
		drain(w, q, node, pair);
		busy |= l->completed < w->config.messages;
		w->wake[node] = time_earlier(w->wake[node], node_copy_due(q));
		if (qp_state(q->core) != (l->stopped ? QP_STATE_SQE : QP_STATE_RTS))
			wrong(w, "node %s pair %u is in state %d", n->name, pair,
			      qp_state(q->core));
		if (q->deadline != TIME_NEVER)
			wrong(w, "node %s pair %u waits for something", n->name, pair);
	}
	if (busy)
		w->wake[node] =
			time_earlier(w->wake[node], w->now + 500 + prng_below(&w->prng, 20000));
	if (n->fault[0] != '\0')
		wrong(w, "node %s: %s", n->name, n->fault);
}

/* Creating the world. */

static void connect_one(struct world *w, struct node_qp *q, struct node_qp *to, uint32_t node,
			const struct gid gid[NODES], const uint32_t psn[NODES])
{
	bool ud = q->caps.type == QP_TYPE_UD;
	const uint32_t route = QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
	const uint32_t mask[] = { QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
					  (ud ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS),
				  ud ? 0 : route, QP_ATTR_SQ_PSN };
	const struct address_vector av = {
		.src_gid = gid[node],
		.dst_gid = gid[1 - node],
		.src_mac = { { 2, 0, 0, 0, 0, (uint8_t)node } },
		.dst_mac = { { 2, 0, 0, 0, 0, (uint8_t)(1 - node) } },
		.hop_limit = 64,
		.src_port = flow_source_port(0, q->caps.qpn, to->caps.qpn),
	};
	struct qp_attributes a = { .path_mtu = (uint32_t)__builtin_ctz(w->mtu) - 7,
				   .access_flags = ACCESS_REMOTE_WRITE,
				   .qkey = QKEY,
				   .port_num = 1,
				   .dest_qpn = to->caps.qpn,
				   .sq_psn = psn[node],
				   .rq_psn = psn[1 - node],
				   .path = { .dgid = av.dst_gid,
					     .sgid = av.src_gid,
					     .hop_limit = 64,
					     .port_num = 1,
					     .is_global = 1 } };

	flow_init(&q->flow, &av);
	for (uint32_t i = 0; i < ARRAY_SIZE(mask); i++) {
		a.state = QP_STATE_INIT + i;
		if (node_modify(q, &a, mask[i] | QP_ATTR_STATE, 0) != 0)
			wrong(w, "the queue pair does not reach state %u", a.state);
	}
}

static void make_pair(struct world *w, uint32_t pair, const struct gid gid[NODES])
{
	struct prng *r = &w->prng;
	uint32_t type = prng_below(r, 2) ? QP_TYPE_UC : QP_TYPE_UD;
	uint32_t psn[NODES] = { 0xffffff - prng_below(r, 200), prng_next(r) & 0xffffff };
	struct node_qp *q[NODES];

	for (uint32_t i = 0; i < NODES; i++) {
		struct qp_caps caps = { .type = type,
					.qpn = (uint32_t)(prng_next(r) & 0xfff) << 8 | (pair + 2),
					.pd = PD,
					.max_send_wr = prng_between(r, 1, 64),
					.max_send_sge = 2,
					.max_recv_sge = 1,
					.port_mtu = (uint32_t)__builtin_ctz(w->mtu) - 7 };

		q[i] = node_qp_add(&w->node[i], &caps, w->node[i].delay_copies);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		size_t base = (size_t)pair * SLOTS * SLOT;

		w->lane[2 * pair + i] = (struct lane){
			.from = q[i],
			.to = q[1 - i],
			.salt = prng_next(r),
			.source_slots = base,
			.receive_slots = base + (size_t)SOURCES * SLOT,
			.target_slots = base + (size_t)(SOURCES + RECEIVES) * SLOT,
		};
		connect_one(w, q[i], q[1 - i], i, gid, psn);
	}
}

/* Options that are not given are drawn. */
static double or_chance(struct prng *r, double given, double often, double most)
{
	if (given >= 0)
		return given;
	return prng_chance(r, often) ? most * prng_below(r, 1000) / 1000 : 0;
}

static void make_world(struct world *w, const struct sim_config *c)
{
	struct prng *r = &w->prng;
	struct gid gid[NODES] = { { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } },
				  { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 } } };
	struct impairment bad;

	prng_seed(r, c->seed);
	w->config = *c;
	bad = (struct impairment){ .loss = or_chance(r, c->loss, 0.6, 0.1),
				   .duplicate = or_chance(r, c->duplicate, 0.4, 0.05),
				   .reorder = or_chance(r, c->reorder, 0.4, 0.05),
				   .corrupt = or_chance(r, c->corrupt, 0.3, 0.02),
				   .delay = c->delay >= 0 ? (nanotime)c->delay
							  : prng_between(r, 200, 20000) };
	w->config.faults = or_chance(r, c->faults, 0.3, 1);
	w->pairs = c->qps != 0 ? MIN_OF(c->qps, SIM_PAIRS) : prng_between(r, 1, 4);
	w->mtu = 256u << prng_below(r, 5);
	w->perfect = bad.loss + bad.duplicate + bad.reorder + bad.corrupt <= 0;
	w->lazy = !w->perfect && prng_below(r, 2);
	if (prng_below(r, 2))
		for (uint32_t i = 0; i < NODES; i++)
			gid[i] =
				(struct gid){ { 0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)(1 + i) } };
	link_init(&w->link, &bad, prng_next(r));
	if (c->pcap != NULL && !link_capture(&w->link, c->pcap))
		wrong(w, "cannot write %s", c->pcap);
	for (uint32_t i = 0; i < NODES; i++) {
		size_t size = (size_t)round_up((size_t)w->pairs * SLOTS * SLOT, 4096);
		struct node *n = &w->node[i];

		node_init(n, i == 0 ? "A" : "B", size, w->pairs, prng_next(r));
		memset(n->memory, GUARD, size);
		n->delay_copies = prng_below(r, 2);
		n->copy_delay = prng_between(r, 1, 5000);
		w->key[i] = node_register(n, 0, size, BASE, PD,
					  ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, 2);
	}
	for (uint32_t i = 0; i < w->pairs; i++)
		make_pair(w, i, gid);
}

/* The run. */

static bool all_done(const struct world *w)
{
	for (uint32_t i = 0; i < 2 * w->pairs; i++)
		if (w->lane[i].completed < w->config.messages)
			return false;
	return link_next(&w->link) == TIME_NEVER;
}

static void step(struct world *w)
{
	nanotime next = time_earlier(link_next(&w->link), time_earlier(w->wake[0], w->wake[1]));
	struct frame *f;
	uint32_t to;

	if (next == TIME_NEVER) {
		wrong(w, "requests are outstanding, but there is nothing to wait for");
		return;
	}
	w->now = MAX_OF(w->now, next) + prng_below(&w->prng, 2000);
	while ((f = link_take(&w->link, w->now, &to)) != NULL) {
		arrived(w, f, to);
		link_taken(&w->link, f);
	}
	node_poll(w, 0);
	node_poll(w, 1);
}

static bool all_guard(const uint8_t *p, size_t octets)
{
	return p[0] == GUARD && memcmp(p, p + 1, octets - 1) == 0;
}

/* Makes the remaining copies; then the guards of all slots must be unchanged. */
static void finish(struct world *w)
{
	uint64_t told = 0;

	for (uint32_t i = 0; i < NODES; i++)
		for (uint32_t pair = 0; pair < w->pairs; pair++) {
			struct node_qp *q = w->node[i].qp[pair];

			while (node_copy_due(q) != TIME_NEVER) {
				node_settle_one(q, true, w->now);
				drain(w, q, i, pair);
			}
			for (uint32_t s = 0; s < SLOTS; s++) {
				const uint8_t *slot =
					w->node[i].memory + ((size_t)pair * SLOTS + s) * SLOT;

				if (!all_guard(slot, EDGE) || !all_guard(slot + SLOT - EDGE, EDGE))
					wrong(w, "node %s: octets beside a message were written",
					      w->node[i].name);
			}
		}
	for (uint32_t i = 0; i < 2 * w->pairs; i++)
		for (uint32_t id = 0; id < w->config.messages; id++)
			told += opcode_of(&w->lane[i], id) != WORK_RDMA_WRITE;
	if (w->perfect && w->config.faults == 0 && w->result->messages != told)
		wrong(w, "%llu of %llu messages arrived over a perfect link",
		      (unsigned long long)w->result->messages, (unsigned long long)told);
}

void lossy_run(const struct sim_config *c, struct sim_result *r)
{
	struct world *w = calloc(1, sizeof(*w));

	if (w == NULL)
		abort();
	*r = (struct sim_result){ .ok = false };
	w->result = r;
	make_world(w, c);
	for (uint64_t steps = 0; r->why[0] == '\0' && !all_done(w); steps++) {
		if (steps > STEPS_AT_MOST)
			wrong(w, "the run does not end");
		step(w);
	}
	if (r->why[0] == '\0')
		finish(w);
	r->ok = r->why[0] == '\0';
	r->link = w->link.counts;
	r->time = w->now;
	for (uint32_t i = 0; i < NODES; i++)
		node_free(&w->node[i]);
	link_free(&w->link);
	free(w);
}
