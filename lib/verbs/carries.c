/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/carries.h"

#define RC  (1u << IBV_QPT_RC)
#define UC  (1u << IBV_QPT_UC)
#define UD  (1u << IBV_QPT_UD)
#define XRC (1u << IBV_QPT_XRC_SEND)
#define RAW (1u << IBV_QPT_RAW_PACKET)

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

static_assert(ARRAY_SIZE(rows) <= 32, "a set of opcodes has 32 bits");

uint32_t transport_opcodes(enum ibv_qp_type type)
{
	uint32_t opcodes = 0;

	if ((uint32_t)type >= 16) /* programs pass any number */
		return 0;
	for (uint32_t opcode = 0; opcode < ARRAY_SIZE(rows); opcode++)
		if (rows[opcode].transports >> type & 1)
			opcodes |= 1u << opcode;
	return opcodes;
}

uint64_t transport_send_ops(enum ibv_qp_type type)
{
	uint32_t opcodes = transport_opcodes(type);
	uint64_t ops = 0;

	for (uint32_t opcode = 0; opcode < ARRAY_SIZE(rows); opcode++)
		if (opcodes >> opcode & 1)
			ops |= rows[opcode].send_op;
	return ops;
}

uint32_t transport_send_flags(enum ibv_qp_type type)
{
	uint32_t flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

	return type == IBV_QPT_UD || type == IBV_QPT_RAW_PACKET ? flags | IBV_SEND_IP_CSUM : flags;
}
