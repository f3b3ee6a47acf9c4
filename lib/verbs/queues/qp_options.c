/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of a queue pair: bursts of its rate limit, ECE, and the order in which data become
 * visible.
 */
#include <errno.h>

#include "verbs/types.h"

/*
 * The pacer always sends bursts of a few packets of the path's MTU. Requests for other bursts are
 * refused.
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
 * ibv_query_ece(3). Options are extensions that two devices of a vendor agree on. This device has
 * none: it offers none and accepts none.
 */
EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (ece == NULL)
		return EINVAL;
	*ece = (struct ibv_ece){ .vendor_id = DEVICE_VENDOR_ID };
	return 0;
}

/*
 * ibv_set_ece(3). Options take effect on the way to RTS, so they cannot be set from RTS on. A peer
 * without options has no vendor: as in rdma-core, EOPNOTSUPP, in errno, too.
 */
EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	enum ibv_qp_state state = qp_shown_state(qp);

	if (ece == NULL)
		return EINVAL;
	if (ece->vendor_id == 0) {
		errno = EOPNOTSUPP;
		return EOPNOTSUPP;
	}
	if (ece->comp_mask != 0)
		return EINVAL;
	if (state != IBV_QPS_RESET && state != IBV_QPS_INIT && state != IBV_QPS_RTR)
		return EINVAL;
	ece->options = 0; /* none are accepted */
	return 0;
}

/*
 * ibv_query_qp_data_in_order(3): never. The last eight octets of a packet's payload become visible
 * after all others, which programs that poll the last octet need. But the others become visible in
 * the order of a memcpy, or of the kernel's copy into another process.
 */
EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}
