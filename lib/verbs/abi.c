/* SPDX-License-Identifier: BSD-3-Clause */
/* What the binary interface of programs rests on, asserted where the compiler sees it. */
#include <assert.h>

#include "base/work.h"
#include "transport/transport.h"
#include "verbs/types.h"

#define SIZE_IS(type, octets) static_assert(sizeof(type) == (octets), #type)

SIZE_IS(struct verbs_context, 648);
SIZE_IS(struct ibv_context, 328);
SIZE_IS(struct ibv_device, 664);
SIZE_IS(struct ibv_pd, 16);
SIZE_IS(struct ibv_mr, 48);
SIZE_IS(struct ibv_mw, 32);
SIZE_IS(struct ibv_ah, 24);
SIZE_IS(struct ibv_srq, 128);
SIZE_IS(struct ibv_qp, 160);
SIZE_IS(struct ibv_qp_ex, 352);
SIZE_IS(struct ibv_cq, 128);
SIZE_IS(struct ibv_cq_ex, 288);
SIZE_IS(struct ibv_comp_channel, 16);
SIZE_IS(struct ibv_wc, 48);
SIZE_IS(struct ibv_send_wr, 128);
SIZE_IS(struct ibv_recv_wr, 32);
SIZE_IS(struct ibv_device_attr, 232);
SIZE_IS(struct ibv_device_attr_ex, 400);
SIZE_IS(struct ibv_port_attr, 52);
SIZE_IS(struct ibv_gid_entry, 32);
static_assert(offsetof(struct verbs_context, context) == 320, "verbs_get_ctx()");
static_assert(offsetof(struct verbs_context, sz) == 312, "verbs_get_ctx_op()");
static_assert(offsetof(struct device, provider) == 664, "what other providers look at");

/* base/work.h and transport/transport.h use the numbers of verbs.h without including it. */
#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours)

SAME(WORK_RDMA_WRITE, IBV_WR_RDMA_WRITE);
SAME(WORK_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
SAME(WORK_SEND, IBV_WR_SEND);
SAME(WORK_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM);
SAME(WORK_RDMA_READ, IBV_WR_RDMA_READ);
SAME(WORK_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP);
SAME(WORK_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
SAME(WORK_LOCAL_INV, IBV_WR_LOCAL_INV);
SAME(WORK_BIND_MW, IBV_WR_BIND_MW);
SAME(WORK_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);
SAME(WORK_TSO, IBV_WR_TSO);
SAME(WORK_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE);

SAME(WORK_FENCE, IBV_SEND_FENCE);
SAME(WORK_SIGNALED, IBV_SEND_SIGNALED);
SAME(WORK_SOLICITED, IBV_SEND_SOLICITED);
SAME(WORK_INLINE, IBV_SEND_INLINE);
SAME(WORK_IP_CSUM, IBV_SEND_IP_CSUM);

SAME(STATUS_SUCCESS, IBV_WC_SUCCESS);
SAME(STATUS_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
SAME(STATUS_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR);
SAME(STATUS_LOC_EEC_OP_ERR, IBV_WC_LOC_EEC_OP_ERR);
SAME(STATUS_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR);
SAME(STATUS_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
SAME(STATUS_MW_BIND_ERR, IBV_WC_MW_BIND_ERR);
SAME(STATUS_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR);
SAME(STATUS_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR);
SAME(STATUS_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
SAME(STATUS_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
SAME(STATUS_REM_OP_ERR, IBV_WC_REM_OP_ERR);
SAME(STATUS_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR);
SAME(STATUS_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR);
SAME(STATUS_REM_ABORT_ERR, IBV_WC_REM_ABORT_ERR);
SAME(STATUS_FATAL_ERR, IBV_WC_FATAL_ERR);
SAME(STATUS_RESP_TIMEOUT_ERR, IBV_WC_RESP_TIMEOUT_ERR);
SAME(STATUS_GENERAL_ERR, IBV_WC_GENERAL_ERR);

SAME(COMPLETION_SEND, IBV_WC_SEND);
SAME(COMPLETION_TSO, IBV_WC_TSO);
SAME(COMPLETION_RDMA_WRITE, IBV_WC_RDMA_WRITE);
SAME(COMPLETION_RDMA_READ, IBV_WC_RDMA_READ);
SAME(COMPLETION_COMP_SWAP, IBV_WC_COMP_SWAP);
SAME(COMPLETION_FETCH_ADD, IBV_WC_FETCH_ADD);
SAME(COMPLETION_BIND_MW, IBV_WC_BIND_MW);
SAME(COMPLETION_LOCAL_INV, IBV_WC_LOCAL_INV);
SAME(COMPLETION_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE);
SAME(COMPLETION_RECV, IBV_WC_RECV);
SAME(COMPLETION_RECV_RDMA_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
SAME(COMPLETION_GRH, IBV_WC_GRH);
SAME(COMPLETION_WITH_IMM, IBV_WC_WITH_IMM);
SAME(COMPLETION_WITH_INV, IBV_WC_WITH_INV);

SAME(ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
SAME(ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
SAME(ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
SAME(ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
SAME(ACCESS_MW_BIND, IBV_ACCESS_MW_BIND);
SAME(ACCESS_ZERO_BASED, IBV_ACCESS_ZERO_BASED);
SAME(ACCESS_ON_DEMAND, IBV_ACCESS_ON_DEMAND);
SAME(ACCESS_HUGETLB, IBV_ACCESS_HUGETLB);
SAME(ACCESS_OPTIONAL_RANGE, IBV_ACCESS_OPTIONAL_RANGE);

SAME(QP_TYPE_RC, IBV_QPT_RC);
SAME(QP_TYPE_UC, IBV_QPT_UC);
SAME(QP_TYPE_UD, IBV_QPT_UD);
SAME(QP_TYPE_RAW_PACKET, IBV_QPT_RAW_PACKET);
SAME(QP_TYPE_XRC_SEND, IBV_QPT_XRC_SEND);
SAME(QP_TYPE_XRC_RECV, IBV_QPT_XRC_RECV);
SAME(QP_STATE_RESET, IBV_QPS_RESET);
SAME(QP_STATE_INIT, IBV_QPS_INIT);
SAME(QP_STATE_RTR, IBV_QPS_RTR);
SAME(QP_STATE_RTS, IBV_QPS_RTS);
SAME(QP_STATE_SQD, IBV_QPS_SQD);
SAME(QP_STATE_SQE, IBV_QPS_SQE);
SAME(QP_STATE_ERR, IBV_QPS_ERR);
SAME(QP_ATTR_STATE, IBV_QP_STATE);
SAME(QP_ATTR_CUR_STATE, IBV_QP_CUR_STATE);
SAME(QP_ATTR_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY);
SAME(QP_ATTR_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
SAME(QP_ATTR_PKEY_INDEX, IBV_QP_PKEY_INDEX);
SAME(QP_ATTR_PORT, IBV_QP_PORT);
SAME(QP_ATTR_QKEY, IBV_QP_QKEY);
SAME(QP_ATTR_AV, IBV_QP_AV);
SAME(QP_ATTR_PATH_MTU, IBV_QP_PATH_MTU);
SAME(QP_ATTR_TIMEOUT, IBV_QP_TIMEOUT);
SAME(QP_ATTR_RETRY_CNT, IBV_QP_RETRY_CNT);
SAME(QP_ATTR_RNR_RETRY, IBV_QP_RNR_RETRY);
SAME(QP_ATTR_RQ_PSN, IBV_QP_RQ_PSN);
SAME(QP_ATTR_MAX_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC);
SAME(QP_ATTR_ALT_PATH, IBV_QP_ALT_PATH);
SAME(QP_ATTR_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
SAME(QP_ATTR_SQ_PSN, IBV_QP_SQ_PSN);
SAME(QP_ATTR_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC);
SAME(QP_ATTR_PATH_MIG_STATE, IBV_QP_PATH_MIG_STATE);
SAME(QP_ATTR_CAP, IBV_QP_CAP);
SAME(QP_ATTR_DEST_QPN, IBV_QP_DEST_QPN);
SAME(QP_ATTR_RATE_LIMIT, IBV_QP_RATE_LIMIT);

/* ibv_poll_cq copies the first 48 octets of a completion as they are; so do elements. */
#define PLACE_IS(ours, our_member, theirs, their_member) \
	static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member), #our_member)

PLACE_IS(struct completion, wr_id, struct ibv_wc, wr_id);
PLACE_IS(struct completion, status, struct ibv_wc, status);
PLACE_IS(struct completion, opcode, struct ibv_wc, opcode);
PLACE_IS(struct completion, vendor_err, struct ibv_wc, vendor_err);
PLACE_IS(struct completion, byte_len, struct ibv_wc, byte_len);
PLACE_IS(struct completion, imm, struct ibv_wc, imm_data);
PLACE_IS(struct completion, qp_num, struct ibv_wc, qp_num);
PLACE_IS(struct completion, src_qp, struct ibv_wc, src_qp);
PLACE_IS(struct completion, wc_flags, struct ibv_wc, wc_flags);
PLACE_IS(struct completion, pkey_index, struct ibv_wc, pkey_index);
PLACE_IS(struct completion, slid, struct ibv_wc, slid);
PLACE_IS(struct completion, sl, struct ibv_wc, sl);
PLACE_IS(struct completion, dlid_path_bits, struct ibv_wc, dlid_path_bits);
SIZE_IS(struct work_sge, sizeof(struct ibv_sge));
PLACE_IS(struct work_sge, addr, struct ibv_sge, addr);
PLACE_IS(struct work_sge, length, struct ibv_sge, length);
PLACE_IS(struct work_sge, lkey, struct ibv_sge, lkey);
