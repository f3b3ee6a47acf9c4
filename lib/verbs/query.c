/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of the device, its port, its GIDs and its only P_Key. The engine answers them. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "verbs/queues/raw.h"

#undef ibv_query_port /* the macro calls the function in struct verbs_context */

#define PAGE_SIZES    0xfffff000u
#define ACK_DELAY     15 /* 4.096 us * 2^15, for peers to add to their timeout */
#define CLOCK_KHZ     1000000u /* timestamps are in ns */
#define WIDTH_1X      1
#define LINK_UP	      5
#define LINK_DISABLED 3
#define PKEY_DEFAULT  0xffff

/* enum ibv_gid_type_sysfs of rdma-core's private driver.h, which is not enum ibv_gid_type */
enum {
	SYSFS_TYPE_ROCE_V2 = 1
};

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       int *type);

/* IB_UVERBS_DEVICE_* of headers newer than Debian 12's */
#define DEVICE_ATOMIC_WRITE    (UINT64_C(1) << 40)
#define DEVICE_FLUSH_GLOBAL    (UINT64_C(1) << 38)
/* IBV_ODP_SUPPORT_*, likewise */
#define ON_DEMAND_FLUSH	       (1u << 6)
#define ON_DEMAND_ATOMIC_WRITE (1u << 7)

/* For the child of a fork, which is not attached: asks in the way that is open to any process. */
static int ask_again(const struct device *d, struct reply_device *facts)
{
	int error = attachment_query_engine(&d->source, facts);

	return error == 0 && facts->engine_id != d->facts.engine_id ? ENODEV : error;
}

static int get_facts(struct ibv_context *context, struct reply_device *facts)
{
	struct request_empty request = { 0 };

	if (attachment_of(context)->stale)
		return ask_again(context_of(context)->device, facts);
	return attachment_command(attachment_of(context), COMMAND_DEVICE, &request.h,
				  sizeof(request), &facts->h, sizeof(*facts), NULL, NULL);
}

static int clip(uint64_t v)
{
	return v > INT_MAX ? INT_MAX : (int)v;
}

static void fill_device(struct ibv_device_attr *a, const struct reply_device *facts)
{
	memset(a, 0, sizeof(*a));
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", UROCE_VERSION);
	a->node_guid = facts->node_guid;
	a->sys_image_guid = facts->sys_image_guid;
	a->max_mr_size = facts->max_mr_size;
	a->page_size_cap = PAGE_SIZES;
	a->vendor_id = DEVICE_VENDOR_ID;
	a->vendor_part_id = DEVICE_PART_ID;
	a->device_cap_flags = raw_device_flags() | IBV_DEVICE_MEM_WINDOW |
			      IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
			      IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID |
			      IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
			      IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_BAD_PKEY_CNTR |
			      IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_XRC;
	a->max_qp = clip(facts->max_qp);
	a->max_qp_wr = clip(facts->max_qp_wr);
	a->max_sge = clip(facts->max_sge);
	a->max_sge_rd = clip(facts->max_sge);
	a->max_cq = clip(facts->max_cq);
	a->max_cqe = clip(facts->max_cqe);
	a->max_mr = clip(facts->max_mr);
	a->max_mw = clip(facts->max_mr); /* the limit is for regions and windows together */
	a->max_pd = clip(facts->max_pd);
	a->max_qp_rd_atom = clip(facts->max_rd_atomic);
	a->max_qp_init_rd_atom = clip(facts->max_rd_atomic);
	a->max_res_rd_atom = clip((uint64_t)facts->max_rd_atomic * facts->max_qp);
	a->max_ah = clip(facts->max_ah);
	a->max_mcast_grp = clip(facts->max_mcast_grp);
	a->max_mcast_qp_attach = clip(facts->max_mcast_qp_attach);
	a->max_total_mcast_qp_attach = clip(facts->max_total_mcast_qp_attach);
	a->max_srq = clip(facts->max_srq);
	a->max_srq_wr = clip(facts->max_qp_wr);
	a->max_srq_sge = clip(facts->max_sge);
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_pkeys = LIMIT_PKEYS;
	a->local_ca_ack_delay = ACK_DELAY;
	a->phys_port_cnt = 1;
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct reply_device facts;
	int error = attr != NULL ? get_facts(context, &facts) : EINVAL;

	if (error == 0)
		fill_device(attr, &facts);
	return error;
}

/*
 * On-demand paging. The engine reaches pages through the program's address space, so all operations
 * on registered memory work with it. It is not available to embedded programs, because a fault
 * there would be the engine's own.
 */
static void fill_on_demand(struct ibv_device_attr_ex *a, bool embedded)
{
	if (embedded)
		return;
	a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	a->odp_caps.per_transport_caps.rc_odp_caps =
		IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
		IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV |
		ON_DEMAND_FLUSH | ON_DEMAND_ATOMIC_WRITE;
	a->odp_caps.per_transport_caps.uc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
						     IBV_ODP_SUPPORT_WRITE |
						     IBV_ODP_SUPPORT_SRQ_RECV;
	a->odp_caps.per_transport_caps.ud_odp_caps =
		IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	a->xrc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			  IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
}

int verbs_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex full = { 0 };
	struct reply_device facts;
	int error;

	if ((input != NULL && input->comp_mask != 0) || attr == NULL ||
	    attr_size < sizeof(attr->orig_attr))
		return EINVAL;
	error = get_facts(context, &facts);
	if (error != 0)
		return error;
	fill_device(&full.orig_attr, &facts);
	full.device_cap_flags_ex =
		full.orig_attr.device_cap_flags | DEVICE_FLUSH_GLOBAL | DEVICE_ATOMIC_WRITE;
	full.phys_port_cnt_ex = 1;
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = CLOCK_KHZ;
	full.cq_mod_caps.max_cq_count = LIMIT_MODERATION;
	full.cq_mod_caps.max_cq_period = LIMIT_MODERATION;
	full.max_dm_size = facts.max_dm_size;
	full.packet_pacing_caps.qp_rate_limit_min = 1;
	full.packet_pacing_caps.qp_rate_limit_max = LIMIT_RATE;
	full.packet_pacing_caps.supported_qpts = 1u << IBV_QPT_RC | 1u << IBV_QPT_UC |
						 1u << IBV_QPT_UD | 1u << IBV_QPT_XRC_SEND |
						 1u << IBV_QPT_RAW_PACKET;
	full.tm_caps.max_rndv_hdr_size = LIMIT_RNDV_HEADER;
	full.tm_caps.max_num_tags = LIMIT_TAGS;
	full.tm_caps.max_ops = LIMIT_TAG_OPS;
	full.tm_caps.max_sge = LIMIT_TAG_SGE;
	full.tm_caps.flags = IBV_TM_CAP_RC;
	raw_fill_attributes(&full);
	fill_on_demand(&full, attachment_of(context)->carrier->embedded);
	memset(attr, 0, attr_size);
	memcpy(attr, &full, MIN_OF(attr_size, sizeof(full)));
	return 0;
}

static void fill_port(struct ibv_port_attr *a, const struct reply_device *facts)
{
	memset(a, 0, sizeof(*a));
	a->state = facts->port_state;
	a->max_mtu = facts->max_mtu;
	a->active_mtu = facts->active_mtu;
	a->gid_tbl_len = LIMIT_GIDS;
	a->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	a->max_msg_sz = LIMIT_MESSAGE;
	a->bad_pkey_cntr = facts->bad_pkey;
	a->qkey_viol_cntr = facts->qkey_violations;
	a->pkey_tbl_len = LIMIT_PKEYS;
	a->max_vl_num = 1;
	a->active_width = facts->active_width != 0 ? facts->active_width : WIDTH_1X;
	a->active_speed = facts->active_speed;
	a->phys_state = facts->port_state == IBV_PORT_ACTIVE ? LINK_UP : LINK_DISABLED;
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	a->flags = IBV_QPF_GRH_REQUIRED;
}

int verbs_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		     size_t attr_size)
{
	struct ibv_port_attr full;
	struct reply_device facts;
	int error;

	if (port_num != 1 || attr == NULL)
		return EINVAL;
	error = get_facts(context, &facts);
	if (error != 0)
		return error;
	fill_port(&full, &facts);
	memset(attr, 0, attr_size);
	memcpy(attr, &full, MIN_OF(attr_size, sizeof(full)));
	return 0;
}

/* The size of the answer in programs built before port_cap_flags2 existed. */
#define COMPAT_PORT_ATTR offsetof(struct ibv_port_attr, port_cap_flags2)

static_assert(COMPAT_PORT_ATTR == 48, "struct _compat_ibv_port_attr");

EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			  struct _compat_ibv_port_attr *port_attr)
{
	return verbs_query_port(context, port_num, (struct ibv_port_attr *)port_attr,
				COMPAT_PORT_ATTR);
}

static bool is_empty(const struct gid *gid)
{
	static const struct gid zero;

	return memcmp(gid, &zero, sizeof(zero)) == 0;
}

static int get_gid(struct ibv_context *context, uint32_t port_num, uint32_t index,
		   struct reply_device *facts)
{
	if (port_num != 1 || index >= LIMIT_GIDS)
		return EINVAL;
	return get_facts(context, facts);
}

/* A free entry is not an error: programs search up to the first free one. */
EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
			 union ibv_gid *gid)
{
	struct reply_device facts;
	int error = gid != NULL ? get_gid(context, port_num, (uint32_t)index, &facts) : EINVAL;

	if (error != 0) {
		errno = error;
		return -1;
	}
	memcpy(gid, &facts.gid[index], sizeof(*gid));
	return 0;
}

static void fill_entry(struct ibv_gid_entry *out, size_t entry_size,
		       const struct reply_device *facts, uint32_t index)
{
	struct ibv_gid_entry entry = {
		.gid_index = index,
		.port_num = 1,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = facts->ifindex,
	};

	memcpy(&entry.gid, &facts->gid[index], sizeof(entry.gid));
	memset(out, 0, entry_size);
	memcpy(out, &entry, MIN_OF(entry_size, sizeof(entry)));
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct reply_device facts;
	int error = flags != 0	    ? EOPNOTSUPP
		    : entry == NULL ? EINVAL
				    : get_gid(context, port_num, gid_index, &facts);

	if (error != 0)
		return error;
	if (is_empty(&facts.gid[gid_index]))
		return ENODATA;
	fill_entry(entry, entry_size, &facts, gid_index);
	return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				    size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct reply_device facts;
	size_t n = 0;
	int error;

	if (flags != 0)
		return -EOPNOTSUPP;
	if (max_entries == 0 || entry_size == 0 || entries == NULL)
		return -EINVAL;
	error = get_facts(context, &facts);
	if (error != 0)
		return -error;
	for (uint32_t i = 0; i < LIMIT_GIDS; i++) {
		if (is_empty(&facts.gid[i]))
			continue;
		if (n == max_entries)
			return -EINVAL; /* as the kernel does: all entries or none */
		fill_entry((struct ibv_gid_entry *)((char *)entries + n++ * entry_size), entry_size,
			   &facts, i);
	}
	return (ssize_t)n;
}

EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			      int *type)
{
	if (port_num != 1 || index >= LIMIT_GIDS) {
		errno = EINVAL;
		return -1;
	}
	*type = SYSFS_TYPE_ROCE_V2;
	return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	if (port_num != 1 || index < 0 || index >= (int)LIMIT_PKEYS || pkey == NULL) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htons(PKEY_DEFAULT);
	return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	if (port_num == 1 && pkey == htons(PKEY_DEFAULT))
		return 0;
	errno = EINVAL;
	return -1;
}
