/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steering rules (ibv_create_flow(3)). Turns their specs into a value and a mask of struct
 * flow_key.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "client/log.h"
#include "verbs/queues/raw.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd

static_assert((int)IBV_FLOW_ATTR_NORMAL == FLOW_NORMAL &&
		      (int)IBV_FLOW_ATTR_ALL_DEFAULT == FLOW_ALL_DEFAULT &&
		      (int)IBV_FLOW_ATTR_MC_DEFAULT == FLOW_MC_DEFAULT &&
		      (int)IBV_FLOW_ATTR_SNIFFER == FLOW_SNIFFER,
	      "verbs.h");

/* A rule whose specs are being read. */
struct rule {
	struct request_create_flow *to;
	struct counters *counters;
};

#define FIELD(to, member, spec, theirs)                                                       \
	do {                                                                                  \
		memcpy(&(to)->value.member, &(spec)->val.theirs, sizeof((to)->value.member)); \
		memcpy(&(to)->mask.member, &(spec)->mask.theirs, sizeof((to)->mask.member));  \
		static_assert(sizeof((to)->value.member) == sizeof((spec)->val.theirs),       \
			      "the same octets");                                             \
	} while (0)

static int take_eth(struct request_create_flow *to, const struct ibv_flow_spec *s)
{
	FIELD(to, dst_mac, &s->eth, dst_mac);
	FIELD(to, src_mac, &s->eth, src_mac);
	FIELD(to, ether_type, &s->eth, ether_type);
	FIELD(to, vlan_tag, &s->eth, vlan_tag);
	to->layers |= FLOW_LAYER_ETH | (s->eth.mask.vlan_tag != 0 ? FLOW_LAYER_VLAN : 0u);
	return 0;
}

static void take_ipv4_addresses(struct request_create_flow *to,
				const struct ibv_flow_ipv4_filter *val,
				const struct ibv_flow_ipv4_filter *mask)
{
	memcpy(to->value.src_ip, &val->src_ip, 4);
	memcpy(to->value.dst_ip, &val->dst_ip, 4);
	memcpy(to->mask.src_ip, &mask->src_ip, 4);
	memcpy(to->mask.dst_ip, &mask->dst_ip, 4);
	to->layers |= FLOW_LAYER_IPV4;
}

static int take_ipv4(struct request_create_flow *to, const struct ibv_flow_spec *s)
{
	take_ipv4_addresses(to, &s->ipv4.val, &s->ipv4.mask);
	return 0;
}

static int take_ipv4_ext(struct request_create_flow *to, const struct ibv_flow_spec *s)
{
	struct ibv_flow_ipv4_filter val = { s->ipv4_ext.val.src_ip, s->ipv4_ext.val.dst_ip };
	struct ibv_flow_ipv4_filter mask = { s->ipv4_ext.mask.src_ip, s->ipv4_ext.mask.dst_ip };

	take_ipv4_addresses(to, &val, &mask);
	FIELD(to, protocol, &s->ipv4_ext, proto);
	FIELD(to, tos, &s->ipv4_ext, tos);
	FIELD(to, ttl, &s->ipv4_ext, ttl);
	FIELD(to, ip_flags, &s->ipv4_ext, flags);
	return 0;
}

static int take_ipv6(struct request_create_flow *to, const struct ibv_flow_spec *s)
{
	FIELD(to, src_ip, &s->ipv6, src_ip);
	FIELD(to, dst_ip, &s->ipv6, dst_ip);
	FIELD(to, flow_label, &s->ipv6, flow_label);
	FIELD(to, protocol, &s->ipv6, next_hdr);
	FIELD(to, tos, &s->ipv6, traffic_class);
	FIELD(to, ttl, &s->ipv6, hop_limit);
	to->layers |= FLOW_LAYER_IPV6;
	return ntohl(s->ipv6.mask.flow_label) > 0xfffff ? EINVAL : 0;
}

static int take_l4(struct request_create_flow *to, const struct ibv_flow_spec *s)
{
	FIELD(to, src_port, &s->tcp_udp, src_port);
	FIELD(to, dst_port, &s->tcp_udp, dst_port);
	to->layers |= s->hdr.type == IBV_FLOW_SPEC_TCP ? FLOW_LAYER_TCP : FLOW_LAYER_UDP;
	return 0;
}

static int take_tag(struct request_create_flow *to, const struct ibv_flow_spec *s)
{
	to->actions |= FLOW_TAG;
	to->tag = s->flow_tag.tag_id;
	return 0;
}

static int take_drop(struct request_create_flow *to, const struct ibv_flow_spec *s)
{
	to->actions |= FLOW_DROP;
	return 0;
}

/* A rule may have one spec of each family. */
enum spec_family {
	SPEC_ETH = 1 << 0,
	SPEC_IP = 1 << 1,
	SPEC_L4 = 1 << 2,
	SPEC_TAG = 1 << 3,
	SPEC_DROP = 1 << 4,
	SPEC_COUNT = 1 << 5,
};

static const struct {
	uint32_t type;
	uint32_t family;
	size_t octets;
	int (*take)(struct request_create_flow *to, const struct ibv_flow_spec *s);
} specs[] = {
	{ IBV_FLOW_SPEC_ETH, SPEC_ETH, sizeof(struct ibv_flow_spec_eth), take_eth },
	{ IBV_FLOW_SPEC_IPV4, SPEC_IP, sizeof(struct ibv_flow_spec_ipv4), take_ipv4 },
	{ IBV_FLOW_SPEC_IPV4_EXT, SPEC_IP, sizeof(struct ibv_flow_spec_ipv4_ext), take_ipv4_ext },
	{ IBV_FLOW_SPEC_IPV6, SPEC_IP, sizeof(struct ibv_flow_spec_ipv6), take_ipv6 },
	{ IBV_FLOW_SPEC_TCP, SPEC_L4, sizeof(struct ibv_flow_spec_tcp_udp), take_l4 },
	{ IBV_FLOW_SPEC_UDP, SPEC_L4, sizeof(struct ibv_flow_spec_tcp_udp), take_l4 },
	{ IBV_FLOW_SPEC_ACTION_TAG, SPEC_TAG, sizeof(struct ibv_flow_spec_action_tag), take_tag },
	{ IBV_FLOW_SPEC_ACTION_DROP, SPEC_DROP, sizeof(struct ibv_flow_spec_action_drop),
	  take_drop },
	{ IBV_FLOW_SPEC_ACTION_COUNT, SPEC_COUNT, sizeof(struct ibv_flow_spec_counter_action),
	  NULL },
};

static int take_spec(struct rule *r, const struct ibv_flow_spec *s, uint32_t *seen)
{
	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		if (s->hdr.type != specs[i].type)
			continue;
		if (s->hdr.size != specs[i].octets || (*seen & specs[i].family))
			return EINVAL;
		*seen |= specs[i].family;
		if (specs[i].take != NULL)
			return specs[i].take(r->to, s);
		if (s->flow_count.counters == NULL)
			return EINVAL;
		r->counters = counters_of(s->flow_count.counters);
		return 0;
	}
	/* tunnels, ESP, MPLS, inner headers, other actions, or an unknown type */
	return EOPNOTSUPP;
}

/* Refuses a rule whose layers contradict each other: it would never match. */
static int check_layers(const struct request_create_flow *r)
{
	uint16_t type = load_be16(r->value.ether_type);

	if (load_be16(r->mask.ether_type) != 0xffff)
		return 0;
	if ((r->layers & FLOW_LAYER_IPV4) && type != ETHERTYPE_IPV4)
		return EINVAL;
	return (r->layers & FLOW_LAYER_IPV6) && type != ETHERTYPE_IPV6 ? EINVAL : 0;
}

/*
 * Ignores attr->size, because programs differ in what they write there (pyverbs leaves out the
 * specs).
 */
static int take_specs(struct rule *r, const struct ibv_flow_attr *attr)
{
	const uint8_t *at = (const uint8_t *)(attr + 1);
	uint32_t seen = 0;
	int error = 0;

	for (uint32_t i = 0; i < attr->num_of_specs && error == 0; i++) {
		struct ibv_flow_spec s;

		/* A copy, because packed specs are not aligned. */
		memcpy(&s.hdr, at, sizeof(s.hdr));
		if (s.hdr.size > sizeof(s))
			return EINVAL;
		memcpy(&s, at, s.hdr.size);

		error = take_spec(r, &s, &seen);
		at += s.hdr.size;
	}
	return error != 0 ? error : check_layers(r->to);
}

static int check_attr(const struct qp *qp, const struct ibv_flow_attr *attr)
{
	if (qp->ibv.qp_base.qp_type == IBV_QPT_UD)
		return EOPNOTSUPP;
	if (qp->ibv.qp_base.qp_type != IBV_QPT_RAW_PACKET || attr == NULL || attr->comp_mask != 0 ||
	    attr->port != 1 || (unsigned int)attr->type > IBV_FLOW_ATTR_SNIFFER)
		return EINVAL;
	if (attr->flags & IBV_FLOW_ATTR_FLAGS_EGRESS)
		return EOPNOTSUPP;
	if (attr->flags & ~(uint32_t)IBV_FLOW_ATTR_FLAGS_DONT_TRAP)
		return EINVAL;
	return 0;
}

static int make_rule(struct qp *qp, const struct ibv_flow_attr *attr,
		     struct request_create_flow *request, struct counters **counters)
{
	struct rule rule = { .to = request };
	int error = check_attr(qp, attr);

	if (error == 0) {
		request->qp = qp->rss != 0 ? 0 : qp->handle;
		request->rss = qp->rss;
		request->kind = attr->type;
		request->priority = attr->priority;
		request->actions =
			attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP ? FLOW_DONT_TRAP : 0u;
		error = take_specs(&rule, attr);
	}
	*counters = rule.counters;
	request->counters = rule.counters != NULL ? rule.counters->handle : 0;
	return error;
}

static struct ibv_flow *create_flow(struct ibv_qp *ibv, struct ibv_flow_attr *attr)
{
	struct request_create_flow request = { 0 };
	struct qp *qp = (struct qp *)ibv;
	struct reply_handle reply;
	struct counters *counters;
	struct steering *flow;
	int error = make_rule(qp, attr, &request, &counters);

	if (error != 0) {
		client_info("create_flow: %s", strerror(error));
		return fail_with(error);
	}
	flow = calloc(1, sizeof(*flow));
	if (flow == NULL)
		return fail_with(ENOMEM);
	error = attachment_command(qp->attachment, COMMAND_CREATE_FLOW, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), NULL, NULL);
	if (error != 0) {
		free(flow);
		return fail_with(error);
	}
	flow->ibv.context = ibv->context;
	flow->ibv.handle = reply.handle;
	flow->qp = qp;
	flow->counters = counters;
	if (counters != NULL)
		verbs_object_use(&counters->object);
	context_hold(context_of(ibv->context));
	return &flow->ibv;
}

static int destroy_flow(struct ibv_flow *ibv)
{
	struct context *c = context_of(ibv->context);
	struct steering *flow = (struct steering *)ibv;
	int error = context_destroy(c, COMMAND_DESTROY_FLOW, ibv->handle);

	if (error != 0)
		return error;
	if (flow->counters != NULL)
		verbs_object_unuse(&flow->counters->object);
	free(flow);
	context_drop(c);
	return 0;
}

/* ---- counters ---- */

static struct ibv_counters *create_counters(struct ibv_context *context,
					    struct ibv_counters_init_attr *init)
{
	struct context *c = context_of(context);
	struct request_handle request = { .handle = c->handle };
	struct reply_handle reply;
	struct counters *k;
	int error;

	if (init == NULL || init->comp_mask != 0)
		return fail_with(init == NULL ? EINVAL : EOPNOTSUPP);
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return fail_with(ENOMEM);
	error = attachment_command(c->attachment, COMMAND_CREATE_COUNTERS, &request.h,
				   sizeof(request), &reply.h, sizeof(reply), NULL, NULL);
	if (error != 0) {
		free(k);
		return fail_with(error);
	}
	k->ibv.context = context;
	k->handle = reply.handle;
	queue_lock_init(&k->lock);
	context_hold(c);
	return &k->ibv;
}

static int destroy_counters(struct ibv_counters *ibv)
{
	struct context *c = context_of(ibv->context);
	struct counters *k = counters_of(ibv);
	int error;

	if (verbs_object_busy(&k->object))
		return EBUSY;
	error = context_destroy(c, COMMAND_DESTROY_COUNTERS, k->handle);
	if (error != 0)
		return error;
	free(k);
	context_drop(c);
	return 0;
}

/*
 * Makes an existing rule count into these counters. The pointer is atomic, because another thread
 * may bind the rule to other counters under their lock; the engine accepts one of them.
 */
static int bind_to(struct counters *k, struct steering *flow)
{
	struct request_attach_counters request = { .counters = k->handle,
						   .flow = flow->ibv.handle };
	struct reply_empty reply;
	int error;

	if (__atomic_load_n(&flow->counters, __ATOMIC_RELAXED) == k)
		return 0;
	error = attachment_command(context_of(k->ibv.context)->attachment, COMMAND_ATTACH_COUNTERS,
				   &request.h, sizeof(request), &reply.h, sizeof(reply), NULL,
				   NULL);
	if (error != 0)
		return error;
	__atomic_store_n(&flow->counters, k, __ATOMIC_RELAXED);
	verbs_object_use(&k->object);
	return 0;
}

static int attach_point(struct ibv_counters *ibv, struct ibv_counter_attach_attr *attr,
			struct ibv_flow *flow)
{
	struct counters *k = counters_of(ibv);
	int error = 0;

	if (attr == NULL || attr->comp_mask != 0)
		return EINVAL;
	if ((unsigned int)attr->counter_desc > IBV_COUNTER_BYTES)
		return ENOTSUP;
	if (flow == NULL && verbs_object_busy(&k->object))
		return EBUSY;
	queue_lock(&k->lock);
	if (k->points == LIMIT_COUNTER_POINTS)
		error = ENOMEM;
	if (error == 0 && flow != NULL)
		error = bind_to(k, (struct steering *)flow);
	if (error == 0) {
		k->point[k->points].what = attr->counter_desc;
		k->point[k->points++].index = attr->index;
	}
	queue_unlock(&k->lock);
	return error;
}

static int read_counters(struct ibv_counters *ibv, uint64_t *value, uint32_t n, uint32_t flags)
{
	struct context *c = context_of(ibv->context);
	struct counters *k = counters_of(ibv);
	struct request_handle request = { .handle = k->handle };
	struct reply_counters reply;
	int error = 0;

	if ((value == NULL && n > 0) || (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED))
		return EINVAL;
	queue_lock(&k->lock);
	for (uint32_t i = 0; i < k->points; i++)
		if (k->point[i].index >= n)
			error = EINVAL;
	if (error == 0)
		error = attachment_command(c->attachment, COMMAND_READ_COUNTERS, &request.h,
					   sizeof(request), &reply.h, sizeof(reply), NULL, NULL);
	if (error == 0) {
		memset(value, 0, n * sizeof(*value));
		for (uint32_t i = 0; i < k->points; i++)
			value[k->point[i].index] += k->point[i].what == IBV_COUNTER_PACKETS
							    ? reply.packets
							    : reply.octets;
	}
	queue_unlock(&k->lock);
	return error;
}

void raw_fill_flow_operations(struct verbs_context *v)
{
	v->ibv_create_flow = create_flow;
	v->ibv_destroy_flow = destroy_flow;
	v->create_counters = create_counters;
	v->destroy_counters = destroy_counters;
	v->attach_counters_point_flow = attach_point;
	v->read_counters = read_counters;
}
