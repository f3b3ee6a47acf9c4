/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes of queue pairs of type RAW_PACKET, and the device's capabilities for them. TSO and
 * checksums are also for UD.
 */
#include <errno.h>

#include "verbs/queues/qp.h"
#include "verbs/queues/raw.h"

#define HASH_FIELDS                                                                   \
	(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 |         \
	 IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP | \
	 IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)
#define CREATE_FLAGS_KNOWN (IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)

int raw_read_init(const struct ibv_qp_init_attr_ex *init, struct raw_init *raw)
{
	uint32_t flags = init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? init->create_flags : 0;

	*raw = (struct raw_init){ 0 };
	if (init->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER)
		raw->max_tso_header = init->max_tso_header;
	if (raw->max_tso_header > LIMIT_TSO_HEADER)
		return EINVAL;
	if (flags & ~(uint32_t)CREATE_FLAGS_KNOWN)
		return EOPNOTSUPP;
	if (flags & IBV_QP_CREATE_CVLAN_STRIPPING)
		raw->flags |= RAW_STRIP_VLAN;
	if (flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
		raw->flags |= RAW_BLOCK_LOOPBACK;
	return 0;
}

int tso_write(struct qp *qp, struct send_work *w, const void *header, size_t header_length,
	      uint16_t mss)
{
	if (header == NULL || header_length == 0 || header_length > qp->max_tso_header || mss == 0)
		return EINVAL;
	w->mss = mss;
	w->tso_header = (uint16_t)header_length;
	/* Kept aside until the number of elements before it is known. */
	memcpy(qp->tso_header, header, header_length);
	return 0;
}

int tso_finish(struct qp *qp, struct send_work *w)
{
	const struct work_sge *sge = send_work_sge(w);
	uint64_t length = 0;

	for (uint32_t i = 0; i < w->num_sge; i++)
		length += sge[i].length;
	if ((w->flags & WORK_INLINE) || length > LIMIT_TSO)
		return EINVAL;
	/* A raw queue pair sends all segments at once. On UD they are paced like other packets. */
	if (qp->ibv.qp_base.qp_type == IBV_QPT_RAW_PACKET &&
	    length > (uint64_t)w->mss * LIMIT_TSO_SEGMENTS)
		return EINVAL;
	memcpy(send_work_sge(w) + w->num_sge, qp->tso_header, w->tso_header);
	return 0;
}

unsigned int raw_device_flags(void)
{
	return IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING;
}

void raw_fill_attributes(struct ibv_device_attr_ex *a)
{
	a->tso_caps.max_tso = LIMIT_TSO;
	a->tso_caps.supported_qpts = 1u << IBV_QPT_UD | 1u << IBV_QPT_RAW_PACKET;
	a->rss_caps.supported_qpts = 1u << IBV_QPT_RAW_PACKET;
	a->rss_caps.max_rwq_indirection_tables = LIMIT_RWQ_TABLES;
	a->rss_caps.max_rwq_indirection_table_size = LIMIT_RWQ_TABLE;
	a->rss_caps.rx_hash_fields_mask = HASH_FIELDS;
	a->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
	a->max_wq_type_rq = LIMIT_QPS;
	a->raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_IP_CSUM;
}
