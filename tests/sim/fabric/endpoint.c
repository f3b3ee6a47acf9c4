/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "endpoint.h"
#include "host.h"
#include "transfer.h"
#include "transport/qp.h"
#include "wire/header.h"
#include "wire/opcode.h"

uint32_t endpoint_qpn(const struct host *h)
{
	return ENDPOINT_QPN + h->endpoints;
}

struct gid endpoint_gid(uint32_t host)
{
	return (struct gid){
		{ [10] = 0xff, [11] = 0xff, 10, 0, (uint8_t)((host + 1) >> 8), (uint8_t)(host + 1) }
	};
}

static struct mac mac_of(uint32_t host)
{
	return (struct mac){ { 2, 0, 0, 0, (uint8_t)(host >> 8), (uint8_t)host } };
}

/* The attributes that modify_qp needs on the way to RTS, by type. */
static const uint32_t *steps_of(uint32_t type)
{
	static const uint32_t rc[] = {
		QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
		QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
		QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_SQ_PSN |
			QP_ATTR_MAX_RD_ATOMIC,
	};
	static const uint32_t uc[] = {
		QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
		QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN,
		QP_ATTR_SQ_PSN,
	};
	static const uint32_t ud[] = { QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY, 0,
				       QP_ATTR_SQ_PSN };

	return type == QP_TYPE_UC ? uc : type == QP_TYPE_UD ? ud : rc;
}

static void connect_core(struct node_qp *q, const struct endpoint_config *c,
			 const struct address_vector *av)
{
	const uint32_t *mask = steps_of(c->type);
	struct qp_attributes a = { .path_mtu = (uint32_t)__builtin_ctz(c->mtu) - 7,
				   .access_flags = ENDPOINT_ACCESS,
				   .qkey = ENDPOINT_QKEY,
				   .min_rnr_timer = 1,
				   .port_num = 1,
				   .timeout = c->timeout,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 16,
				   .max_dest_rd_atomic = 16,
				   .sq_psn = c->psn,
				   .rq_psn = c->psn,
				   .dest_qpn = c->peer_qpn,
				   .path = { .dgid = av->dst_gid,
					     .sgid = av->src_gid,
					     .hop_limit = 64,
					     .traffic_class = av->traffic_class,
					     .port_num = 1,
					     .is_global = 1 } };

	for (uint32_t i = 0; i < QP_STATE_RTS; i++) {
		a.state = QP_STATE_INIT + i;
		if (node_modify(q, &a, mask[i] | QP_ATTR_STATE, 0) != 0)
			abort();
	}
}

static struct node_qp *core_new(struct host *h, const struct endpoint_config *c,
				const struct address_vector *av)
{
	const struct qp_caps caps = { .type = c->type,
				      .qpn = endpoint_qpn(h),
				      .pd = ENDPOINT_PD,
				      .handle = h->endpoints,
				      .max_send_wr = c->depth,
				      .max_send_sge = 1,
				      .max_recv_sge = 1,
				      .max_rd_atomic = 16,
				      .port_mtu = (uint32_t)__builtin_ctz(c->mtu) - 7 };
	struct node_qp *q = node_qp_add(&h->node, &caps, false);

	if (!qp_type_unreliable(c->type))
		qp_give_path(q->core, &h->path[c->peer]);
	connect_core(q, c, av);
	return q;
}

static struct goback *goback_new(const struct endpoint_config *c)
{
	const struct goback_config is = { .dest_qpn = c->peer_qpn,
					  .psn = c->psn,
					  .mtu = c->mtu,
					  .size = c->size,
					  .timeout = UINT64_C(4096) << c->timeout,
					  .dcqcn = c->make == MAKE_DCQCN ? c->rate : 0 };
	struct goback *g = malloc(sizeof(*g));

	if (g == NULL)
		abort();
	goback_init(g, &is);
	return g;
}

struct endpoint *endpoint_add(struct host *h, const struct endpoint_config *c)
{
	struct endpoint *e = &h->endpoint[h->endpoints];
	const struct address_vector av = {
		.src_gid = endpoint_gid(h->number),
		.dst_gid = endpoint_gid(c->peer),
		.src_mac = mac_of(h->number),
		.dst_mac = mac_of(c->peer),
		.traffic_class = c->ect ? ECN_ECT_0 : 0,
		.hop_limit = 64,
		.src_port = flow_source_port(0, endpoint_qpn(h), c->peer_qpn),
	};

	*e = (struct endpoint){ .host = h, .peer = c->peer };
	flow_init(&e->envelope, &av);
	if (c->make == MAKE_UROCE)
		e->q = core_new(h, c, &av);
	else
		e->goback = goback_new(c);
	h->endpoints++;
	return e;
}

void endpoint_free(struct endpoint *e)
{
	free(e->goback);
}

static enum reason goback_take(struct endpoint *e, const struct packet *p, nanotime now)
{
	struct node *n = &e->host->node;
	uint64_t va, at;

	if (!goback_received(e->goback, p, now, &va))
		return REASON_NONE;
	at = va - TRANSFER_BASE;
	if (p->payload_length == 0)
		return REASON_NONE;
	if (!range_inside(at, p->payload_length, n->size))
		return REASON_KEY_RANGE;
	memcpy(n->memory + at, p->payload, p->payload_length);
	return REASON_NONE;
}

enum reason endpoint_received(struct endpoint *e, const struct packet *p, nanotime now)
{
	return e->q != NULL ? node_received(e->q, p, now) : goback_take(e, p, now);
}

static bool goback_make(struct endpoint *e, nanotime now, struct packet *p)
{
	uint32_t message, done;

	if (!goback_next(e->goback, now, p))
		return false;
	if (opcode_table[p->opcode].kind != KIND_WRITE)
		return true;
	message = goback_message(e->goback, p, &done);
	p->rkey = e->transfer->sink_key;
	p->va = TRANSFER_BASE + transfer_slot(e->transfer, e->transfer->sink_at, message);
	p->payload = e->host->node.memory +
		     transfer_slot(e->transfer, e->transfer->source_at, message) + done;
	return true;
}

bool endpoint_next(struct endpoint *e, nanotime now, struct packet *p, uint8_t *payload)
{
	return e->q != NULL ? node_next(e->q, now, p, payload) : goback_make(e, now, p);
}

void endpoint_left(struct endpoint *e, const struct packet *p, nanotime made_at, nanotime now)
{
	if (e->q == NULL)
		return;
	if (qp_type_unreliable(e->q->caps.type))
		node_sent(e->q, p, now);
	else if (made_at != now) {
		qp_left(e->q->core, p, now);
		node_collect(e->q, now);
	}
}

void endpoint_expired(struct endpoint *e, nanotime now)
{
	if (e->q == NULL) {
		goback_expired(e->goback, now);
		return;
	}
	if (e->q->not_before != 0 && e->q->not_before <= now)
		e->q->not_before = 0;
	e->q->deadline = qp_deadline(e->q->core);
	node_expire(e->q, now);
}

nanotime endpoint_deadline(const struct endpoint *e, nanotime now)
{
	if (e->q == NULL)
		return goback_deadline(e->goback, now);
	return e->q->not_before != 0 ? time_earlier(e->q->deadline, e->q->not_before)
				     : e->q->deadline;
}

bool endpoint_is_held(const struct endpoint *e)
{
	return e->q != NULL && qp_is_held(e->q->core);
}

bool endpoint_may_resume(const struct endpoint *e, nanotime now)
{
	return qp_may_resume(e->q->core, now);
}

nanotime endpoint_resumes_at(const struct endpoint *e, nanotime now)
{
	return qp_resumes_at(e->q->core, now);
}

void endpoint_resume(struct endpoint *e, nanotime now)
{
	qp_resume(e->q->core);
	node_collect(e->q, now);
}

bool endpoint_has_packet(const struct endpoint *e, nanotime now)
{
	if (e->q == NULL)
		return goback_has_packet(e->goback, now);
	return e->q->not_before == 0 && qp_has_packet(e->q->core);
}

double endpoint_window(const struct endpoint *e)
{
	if (e->q == NULL)
		return (double)e->goback->window * e->goback->is.mtu;
	return (double)e->q->core->path->window;
}

uint32_t endpoint_timeouts(const struct endpoint *e)
{
	return e->q != NULL ? qp_timeouts(e->q->core) : e->goback->timeouts;
}
