/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles. ibv_create_ah waits until the next hop's MAC address is known, because the first
 * datagram would be lost otherwise.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/log.h"
#include "queue/cancel.h"
#include "verbs/queues/qp.h"

struct ah {
	struct ibv_ah ibv;
};

static int wait_while_resolving(struct attachment *c, enum command ask,
				struct command_request *request, size_t octets,
				struct reply_ah *reply)
{
	uint32_t waited_us = 0;
	int error = 0;

	/*
	 * This very thread may have to poll an embedded engine, so waiting for one could never end.
	 */
	while (error == 0 && reply->state == AH_RESOLVING && !c->carrier->embedded) {
		if (waited_us >= LIMIT_RESOLVE_WAIT * 1000)
			return ETIMEDOUT;
		usleep(LIMIT_AH_ASK_US);
		waited_us += LIMIT_AH_ASK_US;
		error = attachment_command(c, ask, request, octets, &reply->h, sizeof(*reply), NULL,
					   NULL);
	}
	if (error != 0)
		return error;
	return reply->state == AH_UNREACHABLE ? EHOSTUNREACH : 0;
}

/*
 * Waits until the engine has resolved the next hop. `ask`: the command that asks for the state.
 * Not a cancellation point, because the engine would keep the handle.
 */
static int wait_resolved(struct attachment *c, enum command ask, struct command_request *request,
			 size_t octets, struct reply_ah *reply)
{
	int cancel = cancel_off(), error = wait_while_resolving(c, ask, request, octets, reply);

	cancel_restore(cancel);
	return error;
}

static int create_in_engine(struct ibv_pd *pd, const struct ibv_ah_attr *attr, uint32_t *handle)
{
	struct attachment *c = attachment_of(pd->context);
	struct request_create_ah request = { .pd = pd->handle };
	struct request_handle query = { 0 };
	struct reply_ah reply;
	int error;

	path_to_engine(&request.path, attr);
	error = attachment_command(c, COMMAND_CREATE_AH, &request.h, sizeof(request), &reply.h,
				   sizeof(reply), NULL, NULL);
	if (error != 0)
		return error;
	*handle = reply.handle;
	query.handle = reply.handle;
	error = wait_resolved(c, COMMAND_QUERY_AH, &query.h, sizeof(query), &reply);
	if (error == 0)
		return 0;
	client_info("create_ah: %s",
		    error == EHOSTUNREACH ? "the next hop does not answer" : strerror(error));
	attachment_command_handle(c, COMMAND_DESTROY_AH, *handle);
	return error;
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ah *ah;
	int error;

	if (pd == NULL || attr == NULL)
		return fail_with(EINVAL);
	ah = calloc(1, sizeof(*ah));
	if (ah == NULL)
		return fail_with(ENOMEM);
	error = create_in_engine(pd, attr, &ah->ibv.handle);
	if (error != 0) {
		free(ah);
		return fail_with(error);
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	verbs_object_use(&pd_of(pd)->object);
	context_hold(context_of(pd->context));
	return &ah->ibv;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct context *c = context_of(ibv->context);
	int error = context_destroy(c, COMMAND_DESTROY_AH, ibv->handle);
	if (error != 0)
		return error;
	verbs_object_unuse(&pd_of(ibv->pd)->object);
	free(ibv);
	context_drop(c);
	return 0;
}

/* ---- from a received datagram ---- */

/*
 * Reads the 40 octets before a datagram: an IPv6 header, or 20 unused octets and an IPv4 header.
 * `ours` becomes the destination address.
 */
static int read_grh(const struct ibv_grh *grh, struct ibv_global_route *to, union ibv_gid *ours)
{
	const uint8_t *octets = (const uint8_t *)grh, *ip4 = octets + 20;
	static const union ibv_gid mapped = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (octets[0] >> 4 == 6) {
		uint32_t word = load_be32(octets);

		to->flow_label = word & 0xfffff;
		to->traffic_class = (uint8_t)(word >> 20);
		to->hop_limit = grh->hop_limit;
		to->dgid = grh->sgid;
		*ours = grh->dgid;
		return 0;
	}
	if (ip4[0] != 0x45)
		return EPROTONOSUPPORT;
	to->traffic_class = ip4[1];
	to->hop_limit = ip4[8];
	to->dgid = mapped;
	memcpy(to->dgid.raw + 12, ip4 + 12, 4);
	*ours = mapped;
	memcpy(ours->raw + 12, ip4 + 16, 4);
	return 0;
}

static bool is_source(const struct gid *entry, const struct gid *wanted)
{
	static const struct gid empty;

	if (!gid_is_multicast(wanted))
		return gid_equal(entry, wanted);
	return !gid_equal(entry, &empty) && gid_is_ipv4(entry) == gid_is_ipv4(wanted);
}

/*
 * Finds the GID index of the datagram's destination address. For a multicast group, finds the first
 * entry of the same address family.
 */
static int find_sgid(struct ibv_context *context, const union ibv_gid *gid, uint8_t *index)
{
	struct request_empty request = { 0 };
	struct reply_device facts;
	struct gid wanted;
	int error = attachment_command(attachment_of(context), COMMAND_DEVICE, &request.h,
				       sizeof(request), &facts.h, sizeof(facts), NULL, NULL);

	memcpy(&wanted, gid, sizeof(wanted));
	for (uint32_t i = 0; error == 0 && i < LIMIT_GIDS; i++) {
		if (!is_source(&facts.gid[i], &wanted))
			continue;
		*index = (uint8_t)i;
		return 0;
	}
	return error != 0 ? error : ENOENT;
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			       struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	union ibv_gid ours;
	int error = EINVAL;

	if (wc == NULL || ah_attr == NULL) {
		errno = EINVAL;
		return -1;
	}
	memset(ah_attr, 0, sizeof(*ah_attr));
	ah_attr->dlid = wc->slid;
	ah_attr->sl = 0; /* sl of a completion is not a service level (enum completion_sl) */
	ah_attr->src_path_bits = wc->dlid_path_bits;
	ah_attr->port_num = port_num;
	/* On RoCE only the GRH has the sender's address. */
	if (port_num == 1 && (wc->wc_flags & IBV_WC_GRH) && grh != NULL)
		error = read_grh(grh, &ah_attr->grh, &ours);
	if (error == 0)
		error = find_sgid(context, &ours, &ah_attr->grh.sgid_index);
	ah_attr->is_global = error == 0;
	if (error == 0)
		return 0;
	errno = error;
	return -1;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					    struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (pd == NULL)
		return fail_with(EINVAL);
	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
		return NULL;
	return ibv_create_ah(pd, &attr);
}

EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				       uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	struct attachment *c = attachment_of(context);
	struct request_path request = { 0 };
	struct reply_ah reply;
	int error;

	if (attr == NULL || eth_mac == NULL)
		return EINVAL;
	path_to_engine(&request.path, attr);
	error = attachment_command(c, COMMAND_RESOLVE_PATH, &request.h, sizeof(request), &reply.h,
				   sizeof(reply), NULL, NULL);
	if (error == 0)
		error = wait_resolved(c, COMMAND_RESOLVE_PATH, &request.h, sizeof(request), &reply);
	if (error == 0 && reply.state != AH_RESOLVED)
		error = EAGAIN;
	if (error != 0)
		return error;
	memcpy(eth_mac, reply.mac, ETHERNET_LL_SIZE);
	if (vid != NULL)
		*vid = reply.vlan != 0 ? reply.vlan : 0xffff;
	return 0;
}
