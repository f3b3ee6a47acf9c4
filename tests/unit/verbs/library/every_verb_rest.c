/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs, the last part: tags, more extended send calls, more ways to register. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "every_verb.h"

#define TAGS 16u
#define QKEY 0x4321u

static struct {
	struct ibv_cq_ex *tag_cq;
	struct ibv_srq *tags;
	struct ibv_qp *rc; /* with every extended send call that RC has, connected to itself */
	struct ibv_qp *ud; /* the same of UD */
	struct ibv_ah *ah;
	struct ibv_dm *dm;
	uint32_t tag_handles; /* atomic: the newest that ADD gave */
} rest;

static struct ibv_qp *extended_qp(enum ibv_qp_type type, uint64_t operations)
{
	struct ibv_qp_init_attr_ex init = { .send_cq = all.cq,
					    .recv_cq = all.cq,
					    .cap = { 16, 4, 2, 2, 64 },
					    .qp_type = type,
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .pd = all.pd,
					    .send_ops_flags = operations,
					    .max_tso_header = 64 };

	if (type == IBV_QPT_UD)
		init.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	return ibv_create_qp_ex(all.context, &init);
}

static void datagrams_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	int error = ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_PKEY_INDEX);

	attr.qp_state = IBV_QPS_RTR;
	if (error == 0)
		error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (error == 0)
		error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (error != 0)
		die("an extended UD queue pair does not come to RTS: %s", strerror(error));
}

static void make_tags(void)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 1024,
					  .wc_flags =
						  IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO };
	struct ibv_srq_init_attr_ex srq = { .attr = { .max_wr = 16, .max_sge = 1 },
					    .comp_mask =
						    IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
						    IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
					    .srq_type = IBV_SRQT_TM,
					    .pd = all.pd,
					    .tm_cap = { TAGS, TAGS } };

	rest.tag_cq = ibv_create_cq_ex(all.context, &cq);
	if (rest.tag_cq == NULL)
		die("no CQ for tags: %m");
	srq.cq = ibv_cq_ex_to_cq(rest.tag_cq);
	rest.tags = ibv_create_srq_ex(all.context, &srq);
	if (rest.tags == NULL)
		die("no SRQ with tags: %m");
}

void rest_make(void)
{
	struct ibv_alloc_dm_attr dm = { .length = 4096 };

	make_tags();
	rest.rc = extended_qp(IBV_QPT_RC,
			      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				      IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				      IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
				      IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE);
	rest.ud = extended_qp(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
						  IBV_QP_EX_WITH_TSO);
	rest.ah = ibv_create_ah(all.pd, &all.path);
	rest.dm = ibv_alloc_dm(all.context, &dm);
	if (rest.rc == NULL || rest.ud == NULL || rest.ah == NULL || rest.dm == NULL)
		die("no extended queue pairs: %m");
	if (modify(rest.rc, IBV_QPS_INIT, 0) != 0 ||
	    modify(rest.rc, IBV_QPS_RTR, rest.rc->qp_num) != 0 ||
	    modify(rest.rc, IBV_QPS_RTS, 0) != 0)
		die("an extended RC queue pair does not come to RTS");
	datagrams_to_rts(rest.ud);
}

void rest_destroy(void)
{
	struct thread t = { .call = "the end of the last part" };

	must(&t, ibv_destroy_qp(rest.rc));
	must(&t, ibv_destroy_qp(rest.ud));
	must(&t, ibv_destroy_ah(rest.ah));
	must(&t, ibv_free_dm(rest.dm));
	must(&t, ibv_destroy_srq(rest.tags));
	must(&t, ibv_destroy_cq(ibv_cq_ex_to_cq(rest.tag_cq)));
}

/* ---- tags ---- */

static int tag_operation(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad;

	return ibv_post_srq_ops(rest.tags, wr, &bad);
}

static void tag_add(struct thread *t)
{
	struct ibv_sge sge = { (uintptr_t)all.memory + 1024, 64, all.mr->lkey };
	struct ibv_ops_wr wr = { .wr_id = 1,
				 .opcode = IBV_WR_TAG_ADD,
				 .flags = IBV_OPS_SIGNALED,
				 .tm.add = { .recv_wr_id = 2,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .tag = draw(t, 100),
					     .mask = UINT64_MAX } };
	int error = tag_operation(&wr);

	if (error == 0)
		__atomic_store_n(&rest.tag_handles, wr.tm.handle, __ATOMIC_RELAXED);
	else
		tolerate(t, error);
}

/* Another thread may have deleted it before: the completion says so, or the call. */
static void tag_delete(struct thread *t)
{
	struct ibv_ops_wr wr = { .wr_id = 3,
				 .opcode = IBV_WR_TAG_DEL,
				 .flags = IBV_OPS_SIGNALED,
				 .tm.handle =
					 __atomic_load_n(&rest.tag_handles, __ATOMIC_RELAXED) };

	tag_operation(&wr);
}

static void tag_sync(struct thread *t)
{
	struct ibv_ops_wr wr = { .wr_id = 4,
				 .opcode = IBV_WR_TAG_SYNC,
				 .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC };

	tolerate(t, tag_operation(&wr));
}

static void tag_poll(struct thread *t)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc_tm_info info;
	int error = ibv_start_poll(rest.tag_cq, &attr);

	if (error != 0) {
		if (error != ENOENT)
			tolerate(t, error);
		return;
	}
	do {
		ibv_wc_read_tm_info(rest.tag_cq, &info);
		ibv_wc_read_wc_flags(rest.tag_cq);
		error = ibv_next_poll(rest.tag_cq);
	} while (error == 0);
	ibv_end_poll(rest.tag_cq);
}

/* ---- extended sends ---- */

/* One call of RC. A failure takes the queue pair to ERR, where other requests are flushed. */
static void begin_one(struct thread *t, struct ibv_qp_ex *qp)
{
	uint64_t to = (uintptr_t)all.memory + 2048, value = 7;
	struct ibv_mw_bind_info none = { .mr = all.mr };

	switch (draw(t, 9)) {
	case 0:
		ibv_wr_send(qp);
		break;
	case 1:
		ibv_wr_send_imm(qp, 5);
		break;
	case 2:
		ibv_wr_rdma_write_imm(qp, all.mr->rkey, to, 6);
		break;
	case 3:
		ibv_wr_rdma_read(qp, all.mr->rkey, to);
		break;
	case 4:
		ibv_wr_atomic_cmp_swp(qp, all.mr->rkey, to, 0, 1);
		break;
	case 5:
		ibv_wr_local_inv(qp, 0x1234);
		return;
	case 6:
		ibv_wr_send_inv(qp, 0x1234);
		break;
	case 7:
		ibv_wr_atomic_write(qp, all.mr->rkey, to, &value);
		return;
	default:
		ibv_wr_bind_mw(qp, NULL, 0, &none);
		return;
	}
	ibv_wr_set_sge(qp, all.mr->lkey, (uintptr_t)all.memory + 512, 8);
}

/* The whole batch may be refused, because one of its calls names no window. */
static void send_extended(struct thread *t)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(rest.rc);

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	begin_one(t, qp);
	if (draw(t, 4) == 0)
		ibv_wr_abort(qp);
	else
		ibv_wr_complete(qp);
}

static void send_datagram_extended(struct thread *t)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(rest.ud);
	struct ibv_sge sge[2] = { { (uintptr_t)all.memory, 16, all.mr->lkey },
				  { (uintptr_t)all.memory + 64, 16, all.mr->lkey } };
	char text[8] = "inline";
	struct ibv_data_buf data[2] = { { text, 4 }, { text + 4, 4 } };

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	if (draw(t, 2) == 0)
		ibv_wr_send(qp);
	else
		ibv_wr_send_imm(qp, 5);
	ibv_wr_set_ud_addr(qp, rest.ah, rest.ud->qp_num, QKEY);
	switch (draw(t, 3)) {
	case 0:
		ibv_wr_set_sge_list(qp, 2, sge);
		break;
	case 1:
		ibv_wr_set_inline_data(qp, text, sizeof(text));
		break;
	default:
		ibv_wr_set_inline_data_list(qp, 2, data);
	}
	tolerate(t, ibv_wr_complete(qp));
}

/* The header is not TCP: the send queue stops until it is told to go on. */
static void send_segments(struct thread *t)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(rest.ud);
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	uint8_t header[40] = { (uint8_t)draw(t, 256) };

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_tso(qp, header, sizeof(header), 100);
	ibv_wr_set_ud_addr(qp, rest.ah, rest.ud->qp_num, QKEY);
	ibv_wr_set_sge(qp, all.mr->lkey, (uintptr_t)all.memory, 250);
	tolerate(t, ibv_wr_complete(qp));
	tolerate(t, ibv_modify_qp(rest.ud, &rts, IBV_QP_STATE));
}

/* ---- memory ---- */

static void register_elsewhere(struct thread *t)
{
	struct ibv_mr *mr = made(t, ibv_reg_mr_iova(all.pd, all.memory + 8192, 4096, 0x10000,
						    IBV_ACCESS_LOCAL_WRITE));

	if (mr != NULL)
		must(t, ibv_dereg_mr(mr));
	if (ibv_reg_dmabuf_mr(all.pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE) != NULL)
		die("a dma-buf without a descriptor");
}

static void import_device_memory(struct thread *t)
{
	int fd = dup(all.context->cmd_fd);
	struct ibv_context *context = made(t, ibv_import_device(fd));
	struct ibv_dm *dm;
	uint64_t octets;

	if (context == NULL) {
		close(fd);
		return;
	}
	dm = made(t, ibv_import_dm(context, rest.dm->handle));
	if (dm != NULL) {
		tolerate(t, ibv_memcpy_from_dm(&octets, dm, 8, sizeof(octets)));
		ibv_unimport_dm(dm);
	}
	must(t, ibv_close_device(context));
}

const struct call rest_verbs[] = {
	{ "post_srq_ops, ADD", tag_add },
	{ "post_srq_ops, DEL", tag_delete },
	{ "post_srq_ops, SYNC", tag_sync },
	{ "wc_read_tm_info", tag_poll },
	{ "wr_*", send_extended },
	{ "wr_set_ud_addr, wr_set_inline_data", send_datagram_extended },
	{ "wr_send_tso", send_segments },
	{ "reg_mr_iova, reg_dmabuf_mr", register_elsewhere },
	{ "import_dm", import_device_memory },
};

const uint32_t rest_verbs_count = sizeof(rest_verbs) / sizeof(rest_verbs[0]);
