/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/carries.h"

#define RC  (1u << IBV_QPT_RC)
#define UC  (1u << IBV_QPT_UC)
#define UD  (1u << IBV_QPT_UD)
#define XRC (1u << IBV_QPT_XRC_SEND)
#define RAW (1u << IBV_QPT_RAW_PACKET)

/* send_op 0: not offered to queue pairs with extended operations. */
static const struct {
	uint16_t transports;
	uint32_t send_op;
} rows[] = {
	[IBV_WR_SEND] = { UD | UC | RC | XRC | RAW, IBV_QP_EX_WITH_SEND },
	[IBV_WR_SEND_WITH_IMM] = { UD | UC | RC | XRC, IBV_QP_EX_WITH_SEND_WITH_IMM },
	[IBV_WR_RDMA_WRITE] = { UC | RC | XRC, IBV_QP_EX_WITH_RDMA_WRITE },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { UC | RC | XRC, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM },
	[IBV_WR_RDMA_READ] = { RC | XRC, IBV_QP_EX_WITH_RDMA_READ },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { RC | XRC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { RC | XRC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
	[IBV_WR_LOCAL_INV] = { UC | RC | XRC, IBV_QP_EX_WITH_LOCAL_INV },
	[IBV_WR_BIND_MW] = { UC | RC | XRC, IBV_QP_EX_WITH_BIND_MW },
	[IBV_WR_SEND_WITH_INV] = { UC | RC | XRC, IBV_QP_EX_WITH_SEND_WITH_INV },
	[IBV_WR_ATOMIC_WRITE] = { RC, IBV_QP_EX_WITH_ATOMIC_WRITE },
	[IBV_WR_TSO] = { UD | RAW, IBV_QP_EX_WITH_TSO },
	[WORK_FLUSH] = { RC, QP_EX_WITH_FLUSH },
};

bool transport_carries(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	return (unsigned int)opcode < ARRAY_SIZE(rows) && (rows[opcode].transports >> type & 1);
}

uint64_t transport_send_ops(enum ibv_qp_type type)
{
	uint64_t ops = 0;

	for (unsigned int opcode = 0; opcode < ARRAY_SIZE(rows); opcode++)
		if (transport_carries(type, opcode))
			ops |= rows[opcode].send_op;
	return ops;
}
