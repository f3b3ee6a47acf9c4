/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of one end, and what the ends tell each other. */
#include "mix.h"

#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

void mix_tell(struct mix *m, const void *what, size_t length)
{
	if (write(m->tcp, what, length) != (ssize_t)length)
		err(1, "the other end cannot be told");
}

void mix_hear(struct mix *m, void *what, size_t length)
{
	size_t got = 0;
	ssize_t n;

	for (; got < length; got += (size_t)n) {
		n = read(m->tcp, (uint8_t *)what + got, length - got);
		if (n < 0 && errno == EAGAIN)
			errx(1, "round %u: the other end said nothing for %d s", m->round,
			     MIX_PATIENCE);
		if (n <= 0)
			errx(1, "the other end is gone");
	}
}

static void *memory(size_t length)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		err(1, "mmap");
	return at;
}

static struct ibv_mr *registered(struct mix *m, void *at, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(m->pd, at, length, access);

	if (mr == NULL)
		err(1, "ibv_reg_mr of %zu octets", length);
	return mr;
}

static uint8_t *slot(struct mix *m, size_t length)
{
	uint8_t *at = m->slots;

	m->slots += (length + 63) / 64 * 64;
	if (m->slots > m->slots_end)
		errx(2, "too few slots");
	return at;
}

static void make_memory(struct mix *m)
{
	size_t i, room = (MIX_RC * (MIX_WINDOW + MIX_DEPTH) + (MIX_UC + MIX_UD) * MIX_DEPTH +
			  MIX_POOL) *
			 (MIX_SLOT + 64);
	uint64_t word;

	m->source = memory(MIX_SOURCE + 8);
	for (i = 0; i < MIX_SOURCE; i += 8) {
		word = mix_random(m->script.seed, 1234, i, 0);
		memcpy(m->source + i, &word, 8);
	}
	m->source_mr = registered(m, m->source, MIX_SOURCE + 8, ACCESS);
	m->slots = memory(room);
	m->slots_end = m->slots + room;
	m->slots_mr = registered(m, m->slots, room, IBV_ACCESS_LOCAL_WRITE);
	m->scratch = memory(MIX_SLOT);
	for (i = 0; i < MIX_POOL; i++)
		m->pool[i].memory = slot(m, MIX_SLOT);
}

static void make_way(struct mix *m, struct mix_way *way, unsigned int role, unsigned int qp,
		     bool area)
{
	*way = (struct mix_way){ .role = role, .qp = qp, .area = area ? memory(MIX_AREA) : NULL };
	mix_fresh(way, m->source);
}

static void make_memory_of_qp(struct mix *m, struct mix_qp *q, unsigned int number)
{
	uint32_t i;

	q->number = number;
	q->area = memory(MIX_AREA + 8 * MIX_WORDS);
	q->area_mr = registered(m, q->area, MIX_AREA + 8 * MIX_WORDS, ACCESS | IBV_ACCESS_MW_BIND);
	memcpy(q->area, m->source + number, MIX_AREA);
	make_way(m, &q->out, m->role, number, mix_type(number) == IBV_QPT_RC);
	make_way(m, &q->in, 1 - m->role, number, mix_type(number) == IBV_QPT_RC);
	make_way(m, &q->ahead, 1 - m->role, number, false);
	make_way(m, &q->got, 1 - m->role, number, false);
	for (i = 0; i < MIX_WINDOW && mix_type(number) == IBV_QPT_RC; i++) {
		q->landing[i].memory = slot(m, MIX_SLOT);
		q->expected[i] = memory(MIX_SMALL);
	}
	for (i = 0; i < MIX_DEPTH; i++)
		q->room[i].memory = slot(m, MIX_SLOT);
	q->depth = mix_type(number) == IBV_QPT_RC ? 1 + mix_roll(m, MIX_DEPTH) : MIX_DEPTH;
	q->renew = true;
}

static void make_device(struct mix *m)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = MIX_POOL } };
	struct ibv_device_attr device;
	uint32_t most;

	if (list == NULL || list[0] == NULL)
		errx(1, "no device");
	m->is_ours = strncmp(ibv_get_device_name(list[0]), "rxe", 3) != 0;
	m->context = ibv_open_device(list[0]);
	m->pd = m->context == NULL ? NULL : ibv_alloc_pd(m->context);
	m->channel = m->context == NULL ? NULL : ibv_create_comp_channel(m->context);
	if (m->pd == NULL || m->channel == NULL || ibv_query_device(m->context, &device) != 0 ||
	    ibv_query_gid(m->context, 1, (int)m->gid_index, &m->gid) != 0)
		err(1, "%s", ibv_get_device_name(list[0]));
	m->script.most_pieces =
		(uint32_t)(device.max_sge < device.max_srq_sge ? device.max_sge
							       : device.max_srq_sge);
	mix_tell(m, &m->script.most_pieces, sizeof(most));
	mix_hear(m, &most, sizeof(most));
	if (most < m->script.most_pieces)
		m->script.most_pieces = most;
	if (m->script.most_pieces > MIX_PIECES)
		m->script.most_pieces = MIX_PIECES;
	srq.attr.max_sge = m->script.most_pieces;
	m->sends = ibv_create_cq(m->context, 4 * MIX_QPS * MIX_WINDOW, NULL, m->channel, 0);
	m->receives = ibv_create_cq(m->context, 4 * MIX_QPS * MIX_POOL, NULL, m->channel, 0);
	m->srq = ibv_create_srq(m->pd, &srq);
	if (m->sends == NULL || m->receives == NULL || m->srq == NULL)
		err(1, "completion queues %d %d, shared receive queue with %u elements",
		    m->sends != NULL, m->receives != NULL, srq.attr.max_sge);
}

static void make_address(struct mix *m)
{
	struct ibv_ah_attr ah = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = m->peer_gid, .hop_limit = 64, .sgid_index = (uint8_t)m->gid_index }
	};

	m->ah = ibv_create_ah(m->pd, &ah);
	if (m->ah == NULL)
		err(1, "ibv_create_ah");
}

void mix_open(struct mix *m)
{
	struct {
		union ibv_gid gid;
		uint64_t source, rkey, plain;
	} here = { 0 }, there;
	unsigned int i;

	make_device(m);
	make_memory(m);
	for (i = 0; i < MIX_QPS; i++)
		make_memory_of_qp(m, &m->qps[i], i);
	here.gid = m->gid;
	here.source = (uintptr_t)m->source;
	here.rkey = m->source_mr->rkey;
	/* rxe gives wrong results of READs and atomics when packets are lost or come in another order */
	here.plain = m->unordered && !m->is_ours;
	mix_tell(m, &here, sizeof(here));
	mix_hear(m, &there, sizeof(there));
	m->peer_gid = there.gid;
	m->source_there = there.source;
	m->source_rkey = (uint32_t)there.rkey;
	m->script.plain[m->role] = here.plain;
	m->script.plain[1 - m->role] = there.plain;
	make_address(m);
	mix_fill_pool(m);
}

static void create(struct mix *m, struct mix_qp *q)
{
	struct ibv_qp_init_attr a = { .qp_type = mix_type(q->number),
				      .send_cq = m->sends,
				      .recv_cq = m->receives };

	a.cap.max_send_wr = 2 * MIX_WINDOW;
	a.cap.max_recv_wr = MIX_DEPTH;
	a.cap.max_send_sge = a.cap.max_recv_sge = m->script.most_pieces;
	a.cap.max_inline_data = 64;
	if (q->number >= MIX_SHARING && q->number < MIX_RC)
		a.srq = m->srq;
	q->qp = ibv_create_qp(m->pd, &a);
	if (q->qp == NULL)
		err(1, "ibv_create_qp");
}

static void modify(struct mix *m, struct mix_qp *q, struct ibv_qp_attr *a, int mask)
{
	int error = ibv_modify_qp(q->qp, a, mask | IBV_QP_STATE);

	if (error != 0)
		mix_fail(m, q, "to state %d: %s", a->qp_state, strerror(error));
}

void mix_to_state(struct mix *m, struct mix_qp *q, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	modify(m, q, &a, 0);
}

static void to_init(struct mix *m, struct mix_qp *q)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	bool again = m->round > 0 && mix_end(&m->script, q->number, m->round - 1).again;

	/* rxe waits for 50 seconds if a window is bound to a queue pair that is destroyed */
	if (q->mw != NULL && ibv_dealloc_mw(q->mw) != 0)
		mix_fail(m, q, "its window cannot be released");
	q->mw = NULL;
	if (q->qp != NULL && again) {
		if (ibv_destroy_qp(q->qp) != 0)
			mix_fail(m, q, "it cannot be destroyed");
		q->qp = NULL;
	}
	if (q->qp == NULL)
		create(m, q);
	else
		modify(m, q, &a, 0);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = MIX_QKEY, .qp_access_flags = ACCESS
	};
	modify(m, q, &a,
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (mix_type(q->number) == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	q->here.qpn = q->qp->qp_num;
	q->here.psn =
		(uint32_t)mix_random(m->script.seed, 55 + m->role, m->round, q->number) & 0xffffff;
	q->here.area = (uintptr_t)q->area;
	q->here.rkey = q->area_mr->rkey;
}

static enum ibv_mtu mtu_code(uint32_t octets)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 128u << mtu < octets)
		mtu++;
	return mtu;
}

/* Seven repetitions mean "for ever" to rxe. Six take 7 s: an emulated guest may get no processor for 2 s. */
static void to_rts(struct mix *m, struct mix_qp *q)
{
	enum ibv_qp_type type = mix_type(q->number);
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(m->script.mtu),
		.dest_qp_num = q->there.qpn,
		.rq_psn = q->there.psn,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = (uint8_t)(1 + mix_roll(m, 10)),
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = m->peer_gid,
				      .hop_limit = 64,
				      .sgid_index = (uint8_t)m->gid_index } },
	};
	int mask = type == IBV_QPT_UD
			   ? 0
			   : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	modify(m, q, &a, mask);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .sq_psn = q->here.psn,
				  .timeout = 18,
				  .retry_cnt = 6,
				  .rnr_retry = 7,
				  .max_rd_atomic = (uint8_t)(1 + mix_roll(m, 8)) };
	mask = IBV_QP_SQ_PSN;
	if (type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	modify(m, q, &a, mask);
}

/* A window is bound again after each round: a SEND may have invalidated it. */
static void bind(struct mix *m, struct mix_qp *q)
{
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;
	int error, n;

	if (q->mw != NULL)
		ibv_dealloc_mw(q->mw);
	q->mw = ibv_alloc_mw(m->pd, IBV_MW_TYPE_2);
	if (q->mw == NULL)
		err(1, "ibv_alloc_mw");
	wr.bind_mw.mw = q->mw;
	wr.bind_mw.rkey = q->here.window_rkey = ibv_inc_rkey(q->mw->rkey);
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ .mr = q->area_mr,
					   .addr = (uintptr_t)q->area,
					   .length = MIX_AREA,
					   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
							      IBV_ACCESS_REMOTE_READ };
	error = ibv_post_send(q->qp, &wr, &bad);
	if (error != 0)
		mix_fail(m, q, "a window cannot be bound: %s", strerror(error));
	while ((n = ibv_poll_cq(m->sends, 1, &wc)) == 0)
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_BIND_MW)
		mix_fail(m, q, "binding a window: %d, %s", n, ibv_wc_status_str(wc.status));
	q->mw->rkey = wr.bind_mw.rkey;
}

static void exchange(struct mix *m)
{
	unsigned int i;

	for (i = 0; i < MIX_QPS; i++)
		mix_tell(m, &m->qps[i].here, sizeof(m->qps[i].here));
	for (i = 0; i < MIX_QPS; i++)
		mix_hear(m, &m->qps[i].there, sizeof(m->qps[i].there));
}

static void afresh(struct mix *m, struct mix_qp *q)
{
	struct mix_way *ways[] = { &q->out, &q->ahead, &q->got, &q->in };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		mix_fresh(ways[i], m->source);
		ways[i]->next = m->round * m->script.per_round;
	}
	memcpy(q->area, m->source + q->number, MIX_AREA);
	memset(q->area + MIX_AREA, 0, 8 * MIX_WORDS);
	q->posted = q->completed = m->round * m->script.per_round;
	q->receives_posted = q->receives_done = 0;
	q->send_failed = q->receive_failed = false;
}

void mix_prepare_round(struct mix *m)
{
	unsigned int i;
	struct mix_qp *q;

	for (i = 0; i < MIX_QPS; i++)
		if (m->qps[i].renew)
			to_init(m, &m->qps[i]);
	exchange(m);
	for (q = m->qps; q < m->qps + MIX_QPS; q++) {
		if (q->renew) {
			afresh(m, q);
			to_rts(m, q);
			mix_post_receives(m, q);
		}
		q->renew = false;
		if (mix_type(q->number) == IBV_QPT_RC)
			bind(m, q);
	}
	exchange(m);
}
