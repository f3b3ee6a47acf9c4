/* SPDX-License-Identifier: BSD-3-Clause */
/* Small things about a queue pair: connection establishment options (ECE) and placement order. */
#include <errno.h>

#include "verbs/types.h"

/*
 * The pacer's bursts are its own: a few packets of the path's MTU. So a finer choice is not taken,
 * rather than taken and not obeyed.
 */
int verbs_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	struct ibv_qp_attr change = { 0 };

	if (attr == NULL)
		return EINVAL;
	if (attr->max_burst_sz != 0 || attr->typical_pkt_sz != 0)
		return EOPNOTSUPP;
	change.rate_limit = attr->rate_limit;
	return ibv_modify_qp(qp, &change, IBV_QP_RATE_LIMIT);
}

/*
 * Options go beyond the specification by agreement of two devices of a vendor. This one has none:
 * it says so of itself, and accepts none of whoever proposes some.
 */
EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (ece == NULL)
		return EINVAL;
	*ece = (struct ibv_ece){ .vendor_id = DEVICE_VENDOR_ID };
	return 0;
}

/* They would have their effect on the way to RTS: too late from there on. */
EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	enum ibv_qp_state state = qp_shown_state(qp);

	if (ece == NULL || ece->comp_mask != 0)
		return EINVAL;
	if (state != IBV_QPS_RESET && state != IBV_QPS_INIT && state != IBV_QPS_RTR)
		return EINVAL;
	ece->options = 0; /* the accepted ones */
	return 0;
}

/*
 * Never: the last eight octets of a packet's payload become visible after all others, which is what
 * programs that poll on the last octet need, but those others come in the order of a memcpy, or of
 * the kernel's copy into another process.
 */
EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}
