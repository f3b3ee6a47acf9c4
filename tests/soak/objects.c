/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of a program: making, connecting and destroying them. */
#include "soak.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static void *need(void *object, const char *what)
{
	if (object == NULL)
		die("%s: %s", what, strerror(errno));
	return object;
}

/* Separate pages, which can be promoted. */
static uint8_t *pages(size_t length)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return need(at == MAP_FAILED ? NULL : at, "memory");
}

static void open_device(struct soak *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	if (list == NULL || list[0] == NULL)
		die("no device: is an engine at $UROCE_SOCKET?");
	s->context = need(ibv_open_device(list[0]), "ibv_open_device");
	ibv_free_device_list(list);
	if (ibv_query_gid(s->context, 1, (int)s->o.gid_index, &s->gid) != 0 ||
	    ibv_query_port(s->context, 1, &port) != 0)
		die("the port has no GID %u: %m", s->o.gid_index);
	s->mtu = port.active_mtu;
	fcntl(s->context->async_fd, F_SETFL, fcntl(s->context->async_fd, F_GETFL) | O_NONBLOCK);
}

static void make_xrc(struct soak *s)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = POOL, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = s->pd,
		.cq = s->recv_cq,
	};

	s->xrcd = need(ibv_open_xrcd(s->context, &domain), "ibv_open_xrcd");
	srq.xrcd = s->xrcd;
	s->xrc_srq = need(ibv_create_srq_ex(s->context, &srq), "ibv_create_srq_ex");
}

static void make_shared(struct soak *s)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = POOL, .max_sge = 2 } };
	int entries = (int)(s->lane_count * 2 * SLOTS + 2 * POOL);

	s->pd = need(ibv_alloc_pd(s->context), "ibv_alloc_pd");
	s->channel = need(ibv_create_comp_channel(s->context), "ibv_create_comp_channel");
	fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) | O_NONBLOCK);
	s->send_cq = need(ibv_create_cq(s->context, entries, NULL, s->channel, 0), "a CQ");
	s->recv_cq = need(ibv_create_cq(s->context, entries, NULL, s->channel, 0), "a CQ");
	s->srq = need(ibv_create_srq(s->pd, &srq), "ibv_create_srq");
	make_xrc(s);
	s->pool = pages((size_t)2 * POOL * LONGEST);
	s->pool_mr = need(ibv_reg_mr(s->pd, s->pool, (size_t)2 * POOL * LONGEST, ACCESS),
			  "the region of the SRQs");
}

static void make_qps(struct soak *s, struct lane *l)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
						  IBV_QPT_XRC_SEND };
	bool shared = l->kind == KIND_RC_SRQ, xrc = l->kind == KIND_XRC;
	struct ibv_qp_init_attr init = {
		.send_cq = s->send_cq,
		.recv_cq = xrc ? NULL : s->recv_cq,
		.srq = shared ? s->srq : NULL,
		.cap = { 2 * SLOTS, shared || xrc ? 0 : SLOTS, 3, shared || xrc ? 0 : 2,
			 INLINE_MOST },
		.qp_type = types[l->kind],
	};
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV,
					      .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					      .xrcd = s->xrcd };

	l->qp = l->target = need(ibv_create_qp(s->pd, &init), "ibv_create_qp");
	if (xrc)
		l->target = need(ibv_create_qp_ex(s->context, &target), "an XRC target");
}

/* The first lane of a group makes the region for all of the group. */
static void give_memory(struct soak *s, struct lane *l)
{
	size_t length = (size_t)LANES_OF_REGION * LANE_OCTETS;
	const struct lane *first = l - l->index % LANES_OF_REGION;

	if (l == first) {
		l->memory = pages(length);
		l->mr = need(ibv_reg_mr(s->pd, l->memory, length, ACCESS), "ibv_reg_mr");
	} else {
		l->memory = first->memory + (size_t)(l - first) * LANE_OCTETS;
		l->mr = first->mr;
	}
}

static void make_lane(struct soak *s, struct lane *l)
{
	give_memory(s, l);
	make_qps(s, l);
	pattern_fill(l->memory + AT_CONSTANT, l->key, NUMBER_CONSTANT, 0, LONGEST);
	l->far = (struct far_end){ .qpn = l->target->qp_num,
				   .initiator = l->qp->qp_num,
				   .psn = (uint32_t)mix(l->key, 0) & 0xffffff,
				   .rkey = l->mr->rkey,
				   .address = (uintptr_t)l->memory,
				   .gid = s->gid };
	if (ibv_get_srq_num(s->xrc_srq, &l->far.srqn) != 0)
		die("ibv_get_srq_num: %m");
}

static void enter_qpn(struct soak *s, const struct lane *l)
{
	uint32_t i = l->target->qp_num & s->by_qpn_mask;

	while (s->by_qpn[i] != 0)
		i = (i + 1) & s->by_qpn_mask;
	s->by_qpn[i] = l->index + 1;
}

struct lane *lane_of_qpn(struct soak *s, uint32_t qpn)
{
	for (uint32_t i = qpn & s->by_qpn_mask; s->by_qpn[i] != 0; i = (i + 1) & s->by_qpn_mask)
		if (s->lanes[s->by_qpn[i] - 1].target->qp_num == qpn)
			return &s->lanes[s->by_qpn[i] - 1];
	die("%s: a completion of queue pair %u, which nobody has", s->o.name, qpn);
}

void objects_make(struct soak *s)
{
	uint32_t i = 0;

	for (int k = 0; k < KINDS; k++)
		s->lane_count += s->o.counts[k];
	s->lanes = need(calloc(s->lane_count, sizeof(*s->lanes)), "lanes");
	for (s->by_qpn_mask = 1; s->by_qpn_mask < 2 * s->lane_count;)
		s->by_qpn_mask = 2 * s->by_qpn_mask + 1;
	s->by_qpn = need(calloc(s->by_qpn_mask + 1, sizeof(*s->by_qpn)), "lanes by number");
	open_device(s);
	make_shared(s);
	for (int k = 0; k < KINDS; k++) {
		for (uint32_t n = 0; n < s->o.counts[k]; n++, i++) {
			struct lane *l = &s->lanes[i];
			uint64_t pair = mix(s->o.seed, i);

			l->kind = (enum kind)k;
			l->index = i;
			l->key = mix(pair, s->o.server ? 1 : 2);
			l->far_key = mix(pair, s->o.server ? 2 : 1);
			make_lane(s, l);
			enter_qpn(s, l);
		}
	}
}

/* ---- connected ---- */

/*
 * The number of a queue pair whose program was killed may be used again while its peer still tries
 * to reach it. Until the peer's queue pair ends, it refuses a connection of another user's
 * (docs/security.md).
 */
static void modify(const struct soak *s, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	double end = seconds_now() + LOST_S;
	int error;

	while ((error = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE)) == EADDRINUSE &&
	       seconds_now() < end)
		usleep(100000);
	if (error != 0)
		die("%s: queue pair %u to state %d: %s", s->o.name, qp->qp_num, (int)attr->qp_state,
		    strerror(error));
}

struct path {
	union ibv_gid gid;
	uint32_t qpn, send_psn, receive_psn;
	enum ibv_mtu mtu;
};

static void fill_route(const struct soak *s, struct ibv_ah_attr *ah, const union ibv_gid *gid)
{
	*ah = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = (uint8_t)s->o.gid_index, .hop_limit = 64 }
	};
}

static void connect_qp(const struct soak *s, struct ibv_qp *qp, const struct path *p, bool reliable)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = reliable ? ACCESS
								: IBV_ACCESS_LOCAL_WRITE |
									  IBV_ACCESS_REMOTE_WRITE };

	modify(s, qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = p->mtu,
				     .dest_qp_num = p->qpn,
				     .rq_psn = p->receive_psn,
				     .max_dest_rd_atomic = SLOTS,
				     .min_rnr_timer = 12 };
	fill_route(s, &attr.ah_attr, &p->gid);
	modify(s, qp, &attr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .sq_psn = p->send_psn,
				     .timeout = RETRY_TIME,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = SLOTS };
	modify(s, qp, &attr,
	       IBV_QP_SQ_PSN | (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						   IBV_QP_MAX_QP_RD_ATOMIC
					 : 0));
}

static void connect_ud(struct soak *s, struct lane *l)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_ah_attr ah;

	modify(s, l->qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	modify(s, l->qp, &attr, 0);
	attr.qp_state = IBV_QPS_RTS;
	modify(s, l->qp, &attr, IBV_QP_SQ_PSN);
	fill_route(s, &ah, &l->far.gid);
	l->ah = need(ibv_create_ah(s->pd, &ah), "ibv_create_ah");
}

/* Lanes of short packets are between those of the port's. */
static enum ibv_mtu lane_mtu(const struct soak *s, const struct lane *l)
{
	return l->index % 2 == 1 && s->mtu > IBV_MTU_1024 ? IBV_MTU_1024 : s->mtu;
}

void objects_connect(struct soak *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++) {
		struct lane *l = &s->lanes[i];
		struct path p = { .gid = l->far.gid,
				  .qpn = l->far.qpn,
				  .send_psn = (uint32_t)mix(l->key, 0) & 0xffffff,
				  .receive_psn = l->far.psn,
				  .mtu = lane_mtu(s, l) };

		if (l->kind == KIND_UD) {
			connect_ud(s, l);
			continue;
		}
		connect_qp(s, l->qp, &p, l->kind != KIND_UC);
		if (l->kind == KIND_XRC) {
			p.qpn = l->far.initiator;
			connect_qp(s, l->target, &p, true);
		}
	}
}

struct ibv_qp *loop_qp(struct soak *s, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = { 4, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};

	return ibv_create_qp(s->pd, &init);
}

void loop_connect(struct soak *s, struct ibv_qp *qp, struct ibv_qp *to)
{
	struct path p = { .gid = s->gid, .qpn = to->qp_num, .mtu = s->mtu };

	connect_qp(s, qp, &p, true);
}

/* ---- destroyed ---- */

/* After the engine has ended, objects exist in the library only. */
static void must(struct soak *s, int error, const char *what)
{
	if (error != 0)
		engine_must_be_gone(s, what, error);
}

static void destroy_lane(struct soak *s, struct lane *l)
{
	if (l->target != l->qp)
		must(s, ibv_destroy_qp(l->target), "ibv_destroy_qp of an XRC target");
	must(s, ibv_destroy_qp(l->qp), "ibv_destroy_qp");
	if (l->ah != NULL)
		must(s, ibv_destroy_ah(l->ah), "ibv_destroy_ah");
}

static void take_memory(struct soak *s, struct lane *first)
{
	must(s, ibv_dereg_mr(first->mr), "ibv_dereg_mr");
	munmap(first->memory, (size_t)LANES_OF_REGION * LANE_OCTETS);
}

void objects_destroy(struct soak *s)
{
	for (uint32_t i = 0; i < s->lane_count; i++)
		destroy_lane(s, &s->lanes[i]);
	for (uint32_t i = 0; i < s->lane_count; i += LANES_OF_REGION)
		take_memory(s, &s->lanes[i]);
	must(s, ibv_destroy_srq(s->srq), "ibv_destroy_srq");
	must(s, ibv_destroy_srq(s->xrc_srq), "ibv_destroy_srq of XRC");
	must(s, ibv_close_xrcd(s->xrcd), "ibv_close_xrcd");
	must(s, ibv_dereg_mr(s->pool_mr), "ibv_dereg_mr of the SRQs' region");
	must(s, ibv_destroy_cq(s->send_cq), "ibv_destroy_cq");
	must(s, ibv_destroy_cq(s->recv_cq), "ibv_destroy_cq");
	must(s, ibv_destroy_comp_channel(s->channel), "ibv_destroy_comp_channel");
	must(s, ibv_dealloc_pd(s->pd), "ibv_dealloc_pd");
	if (ibv_close_device(s->context) != 0 && !s->lost)
		die("%s: ibv_close_device: %m", s->o.name);
	munmap(s->pool, (size_t)2 * POOL * LONGEST);
	free(s->by_qpn);
	free(s->lanes);
}
