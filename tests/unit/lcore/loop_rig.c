/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/buffers.h"
#include "loop_rig.h"
#include "queue/doorbell.h"
#include "queue/ring_client.h"

#define RIG_PD	  7u
#define RIG_SLOTS 1024u
#define RIG_CQE	  1024u

uint8_t rig_timeout = 14;
uint8_t rig_type = QP_TYPE_RC;
uint8_t rig_mtu = 5;
uint32_t rig_depth = 128;
uint16_t rig_tickets;

static void *rig_ring(struct rig *r, uint32_t slots, uint32_t stride, bool many)
{
	void *m = arena_at(r->arena, arena_allocate(r->arena, ring_bytes(slots, stride)));

	ring_format(m, slots, many);
	return m;
}

static void cq_open(struct rig *r, struct engine_cq *cq)
{
	void *ring = rig_ring(r, RIG_CQE, sizeof(struct completion), false);
	struct cq_page *page = arena_at(r->arena, arena_allocate(r->arena, sizeof(struct cq_page)));

	cq->rings.now = &cq->rings.half[0];
	cq_ring_init(cq->rings.now, ring, page, RIG_CQE, RIG_CQE - 1);
	cq->client = &r->client;
	cq->async_fd = -1;
}

static void region_open(struct rig *r, struct rig_side *s)
{
	struct region *m = calloc(1, sizeof(*m) + sizeof(m->piece[0]));

	s->buffer = calloc(1, RIG_BUFFER);
	s->key = key_allocate(&r->engine.keys, 1);
	*m = (struct region){ .key = s->key,
			      .pd = RIG_PD,
			      .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
					ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
			      .iova = (uintptr_t)s->buffer,
			      .length = RIG_BUFFER,
			      .pieces = 1 };
	m->piece[0].direct = s->buffer;
	key_publish(&r->engine.keys, s->key, m);
}

static void qp_open(struct rig *r, uint32_t side)
{
	struct rig_side *s = &r->side[side];
	struct engine_qp *q = &s->qp;
	struct qp_caps caps = { .type = rig_type,
				.pd = RIG_PD,
				.handle = side + 1,
				.max_send_wr = rig_depth,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_rd_atomic = 16,
				.tickets = rig_tickets,
				.port_mtu = 5 };
	uint32_t stride = send_work_stride(1, 0);

	caps.qpn = directory_reserve(&r->engine, 0, q);
	q->core = qp_init(aligned_alloc(64, round_up(qp_memory_size(&caps), 64)), &caps);
	q->handle = side + 1;
	q->type = rig_type;
	q->unreliable = qp_type_unreliable(rig_type);
	q->client = &r->client;
	q->send_cq = &s->send_cq;
	q->recv_cq = &s->recv_cq;
	q->async_fd = -1;
	q->page = arena_at(r->arena, arena_allocate(r->arena, sizeof(*q->page)));
	ring_side_init(&q->sq, rig_ring(r, 2 * rig_depth, stride, false), 2 * rig_depth, stride);
	ring_side_init(&q->rq, rig_ring(r, RIG_SLOTS, 64, false), RIG_SLOTS, 64);
	q->receive = calloc(1, 64);
	q->flow_state = FLOW_LOOP;
	lcore_qp_attach(&r->engine.lcore[0], q, clock_now());
	r->client.qp[q->handle] = q;
}

static void qp_connect(struct rig *r, uint32_t side)
{
	struct engine_qp *q = &r->side[side].qp;
	struct address_vector av = { .hop_limit = 64 };
	struct qp_attributes a = { .state = QP_STATE_INIT,
				   .port_num = 1,
				   .access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
						   ACCESS_REMOTE_ATOMIC };
	static const uint8_t own[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 };
	uint32_t to_rtr =
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
	uint32_t to_rts = QP_ATTR_STATE | QP_ATTR_SQ_PSN;
	int err;

	if (q->type == QP_TYPE_RC) {
		to_rtr |= QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
		to_rts |= QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
			  QP_ATTR_MAX_RD_ATOMIC;
	}

	memcpy(&av.src_gid, own, 16);
	memcpy(&av.dst_gid, own, 16);
	av.src_port = flow_source_port(0, q->qpn, r->side[side ^ 1].qp.qpn);
	flow_init(&q->flow, &av);
	err = qp_modify(q->core, &a,
			QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
			NULL);
	a.state = QP_STATE_RTR;
	a.path.dgid = a.path.sgid = av.src_gid;
	a.path.is_global = 1;
	a.path.port_num = 1;
	a.path_mtu = rig_mtu;
	a.dest_qpn = r->side[side ^ 1].qp.qpn;
	a.max_dest_rd_atomic = 16;
	a.min_rnr_timer = 12;
	err |= qp_modify(q->core, &a, to_rtr, NULL);
	a.state = QP_STATE_RTS;
	a.timeout = rig_timeout;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 16;
	err |= qp_modify(q->core, &a, to_rts, NULL);
	if (err != 0) {
		fputs("loop rig: the queue pairs cannot be connected\n", stderr);
		abort();
	}
}

static void eal_open(void)
{
	static bool open;
	char prefix[32];
	char *argv[] = { "rig",
			 "-l",
			 "0",
			 "--no-huge",
			 "--no-shconf",
			 "--no-pci",
			 "-m",
			 "32",
			 "--file-prefix",
			 prefix,
			 "--no-telemetry",
			 "--log-level",
			 "*:error",
			 NULL };

	if (open)
		return;
	snprintf(prefix, sizeof(prefix), "uroce-rig-%d", (int)getpid());
	if (rte_eal_init((int)ARRAY_SIZE(argv) - 1, argv) < 0)
		abort();
	open = true;
}

struct rig *rig_open(void)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct engine *e = &r->engine;
	static const uint8_t seed[16] = { 1, 2, 3 };

	eal_open();
	clock_init();
	e->lcores = 1;
	e->lcore = aligned_alloc(64, sizeof(struct lcore));
	e->buffers = 4095;
	e->pool = buffers_make("rig", 4095, 128 + 4352, NULL);
	key_table_init(&e->keys, calloc(1, key_table_size(64)), 64, seed);
	r->arena = arena_create_private();
	r->client.engine = e;
	r->client.arena = r->arena;
	r->client.embedded = true;
	r->client.qp = calloc(LIMIT_QPS + 1, sizeof(*r->client.qp));
	if (directory_init(e) != 0 || lcore_init(e, e->lcore, 0) != 0 || e->pool == NULL)
		abort();
	ring_side_init(&r->client.bell[0], rig_ring(r, DOORBELL_SLOTS, DOORBELL_STRIDE, true),
		       DOORBELL_SLOTS, DOORBELL_STRIDE);
	lcore_client_attach(e->lcore, &r->client);
	for (uint32_t i = 0; i < RIG_SIDES; i++) {
		cq_open(r, &r->side[i].send_cq);
		cq_open(r, &r->side[i].recv_cq);
		region_open(r, &r->side[i]);
		qp_open(r, i);
	}
	for (uint32_t i = 0; i < RIG_SIDES; i++)
		qp_connect(r, i);
	return r;
}

void rig_close(struct rig *r)
{
	rig_close_counting(r);
}

uint32_t rig_close_counting(struct rig *r)
{
	uint32_t lost;

	for (uint32_t i = 0; i < RIG_SIDES; i++) {
		struct rig_side *s = &r->side[i];

		lcore_qp_detach(r->engine.lcore, &s->qp, clock_now());
		free((void *)(uintptr_t)key_withdraw(&r->engine.keys, s->key));
		free(s->qp.core);
		free(s->qp.receive);
		free(s->buffer);
	}
	lcore_destroy(r->engine.lcore);
	directory_destroy(&r->engine);
	lost = rte_mempool_in_use_count(r->engine.pool);
	rte_mempool_free(r->engine.pool);
	arena_destroy(r->arena);
	free(r->engine.keys.slot);
	free(r->engine.lcore);
	free(r->client.qp);
	free(r);
	return lost;
}

static bool rig_post_work(struct rig *r, uint32_t side, const struct send_work *what, uint32_t from,
			  uint32_t length)
{
	struct rig_side *s = &r->side[side];
	struct rte_ring *ring = (struct rte_ring *)s->qp.sq.shared;
	struct send_work *w = ring_client_reserve(ring, s->qp.sq.stride);

	if (w == NULL)
		return false;
	*w = *what;
	w->num_sge = 1;
	*send_work_sge(w) = (struct work_sge){ (uintptr_t)s->buffer + from, length, s->key };
	ring_client_publish(ring);
	doorbell_ring((struct rte_ring *)r->client.bell[0].shared, &s->qp.page->doorbell,
		      s->qp.handle, &r->engine.lcore->sleeping, -1);
	return true;
}

bool rig_post_at(struct rig *r, uint32_t side, enum work_opcode opcode, uint32_t from, uint32_t to,
		 uint32_t length, uint32_t flags)
{
	const struct rig_side *peer = &r->side[side ^ 1];
	struct send_work w = { .opcode = (uint8_t)opcode,
			       .flags = (uint8_t)flags,
			       .rkey = peer->key,
			       .remote_addr = (uintptr_t)peer->buffer + to };

	return rig_post_work(r, side, &w, from, length);
}

bool rig_post(struct rig *r, uint32_t side, enum work_opcode opcode, uint32_t length,
	      uint32_t flags)
{
	return rig_post_at(r, side, opcode, 0, 0, length, flags);
}

bool rig_post_invalidate(struct rig *r, uint32_t side, uint32_t length, uint32_t key)
{
	struct send_work w = { .opcode = WORK_SEND_WITH_INV, .flags = WORK_SIGNALED, .imm = key };

	return rig_post_work(r, side, &w, 0, length);
}

bool rig_receive_at(struct rig *r, uint32_t side, uint32_t at, uint32_t length)
{
	struct rig_side *s = &r->side[side];
	struct rte_ring *ring = (struct rte_ring *)s->qp.rq.shared;
	struct recv_work *w = ring_client_reserve(ring, s->qp.rq.stride);

	if (w == NULL)
		return false;
	*w = (struct recv_work){ .num_sge = 1 };
	*recv_work_sge(w) = (struct work_sge){ (uintptr_t)s->buffer + at, length, s->key };
	ring_client_publish(ring);
	return true;
}

bool rig_receive(struct rig *r, uint32_t side)
{
	return rig_receive_at(r, side, 0, RIG_BUFFER);
}

static void take(struct rig_side *s, struct engine_cq *cq)
{
	struct rte_ring *ring = (struct rte_ring *)cq->rings.now->shared;
	const struct completion *c;

	while ((c = ring_client_peek(ring, sizeof(*c))) != NULL) {
		s->last = *c;
		s->completions++;
		ring_client_release(ring, 1);
	}
}

void rig_poll(struct rig *r)
{
	lcore_poll(r->engine.lcore);
	for (uint32_t i = 0; i < RIG_SIDES; i++) {
		take(&r->side[i], &r->side[i].send_cq);
		take(&r->side[i], &r->side[i].recv_cq);
	}
}

struct peer_memory *rig_own_memory(void)
{
	struct peer_memory *m = calloc(1, sizeof(*m));
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	if (m == NULL || peer_memory_open(m, fd, getpid(), geteuid()) != 0)
		abort();
	return m;
}

void rig_use_port(struct rig *r, struct port *port)
{
	r->engine.port = port;
	r->engine.lcore->queue = 0;
	for (uint32_t i = 0; i < RIG_SIDES; i++)
		r->side[i].qp.flow_state = FLOW_PORT;
}
