/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_cq_ex (ibv_create_cq_ex(3)): the program polls one completion at a time and reads its members
 * through functions. start_poll takes the CQ's lock, and end_poll releases it.
 */
#include <errno.h>

#include "verbs/queues/cq.h"

static struct cq *own(struct ibv_cq_ex *ibv)
{
	return (struct cq *)ibv;
}

static int next(struct cq *cq)
{
	if (!cq_take(cq, &cq->current)) {
		if (!cq_take_when_empty(cq, &cq->current))
			return ENOENT;
	} else {
		cq->empty_polls = 0;
	}
	cq->ibv.wr_id = cq->current.wr_id;
	cq->ibv.status = cq->current.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr)
{
	struct cq *cq = own(ibv);
	int error;

	if (attr->comp_mask != 0 || cq->stale)
		return EINVAL;
	queue_lock(&cq->lock);
	cq_note_polled(cq);
	if (cq->tells_wallclock)
		cq->wallclock = clock_to_wall(cq->attachment);
	error = next(cq);
	if (error != 0)
		queue_unlock(&cq->lock);
	else
		__atomic_store_n(&cq->poller, pthread_self(), __ATOMIC_RELAXED);
	return error;
}

static int next_poll(struct ibv_cq_ex *ibv)
{
	return next(own(ibv));
}

static void end_poll(struct ibv_cq_ex *ibv)
{
	__atomic_store_n(&own(ibv)->poller, 0, __ATOMIC_RELAXED);
	queue_unlock(&own(ibv)->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.opcode;
}

/* The member of a success may hold a tag (base/work.h). A success has no vendor error. */
static uint32_t read_vendor_err(struct ibv_cq_ex *ibv)
{
	const struct completion *c = &own(ibv)->current;

	return c->status == STATUS_SUCCESS ? 0 : c->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.timestamp;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.timestamp + own(ibv)->wallclock;
}

/* base/work.h says which members hold the next values. */
static uint16_t read_cvlan(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.slid;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ibv)
{
	return own(ibv)->current.src_qp;
}

static void read_tm_info(struct ibv_cq_ex *ibv, struct ibv_wc_tm_info *info)
{
	const struct completion *c = &own(ibv)->current;

	info->tag = (uint64_t)c->vendor_err << 32 | c->src_qp;
	info->priv = (uint32_t)c->slid << 16 | c->pkey_index;
}

void cq_ex_fill(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	cq->read_byte_len = read_byte_len;
	cq->read_imm_data = read_imm_data;
	cq->read_qp_num = read_qp_num;
	cq->read_src_qp = read_src_qp;
	cq->read_slid = read_slid;
	cq->read_sl = read_sl;
	cq->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
	own(cq)->tells_wallclock = cq->read_completion_wallclock_ns != NULL;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		cq->read_cvlan = read_cvlan;
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		cq->read_flow_tag = read_flow_tag;
	if (wc_flags & IBV_WC_EX_WITH_TM_INFO)
		cq->read_tm_info = read_tm_info;
}
