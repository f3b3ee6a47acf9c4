/* SPDX-License-Identifier: BSD-3-Clause */
#include "self.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PORT 1
#define GID  1 /* index of the first IPv4 address; 0 is the link-local address */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list != NULL && list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	if (list != NULL)
		ibv_free_device_list(list);
	return context;
}

/* RESET -> INIT -> RTR -> RTS, as ibv_modify_qp(3) wants it. */
static int connect_to_itself(struct self *s)
{
	const struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
					  .port_num = PORT,
					  .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = s->qp->qp_num,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .ah_attr = { .is_global = 1,
						.port_num = PORT,
						.grh = { .sgid_index = GID, .hop_limit = 64 } } };
	const struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
					 .timeout = 14,
					 .retry_cnt = 7,
					 .rnr_retry = 7,
					 .max_rd_atomic = 1 };
	struct ibv_qp_attr attr = init;
	int error = ibv_query_gid(s->context, PORT, GID, &rtr.ah_attr.grh.dgid);

	if (error == 0)
		error = ibv_modify_qp(s->qp, &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS);
	if (error == 0)
		error = ibv_modify_qp(s->qp, &rtr,
				      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER);
	attr = rts;
	if (error == 0)
		error = ibv_modify_qp(s->qp, &attr,
				      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					      IBV_QP_MAX_QP_RD_ATOMIC);
	return error;
}

static const char *open_objects(struct self *s, const char *device)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC
	};

	s->context = open_device(device);
	if (s->context == NULL)
		return "ibv_open_device";
	s->pd = ibv_alloc_pd(s->context);
	if (s->pd == NULL)
		return "ibv_alloc_pd";
	s->cq = ibv_create_cq(s->context, 2, NULL, NULL, 0);
	if (s->cq == NULL)
		return "ibv_create_cq";
	init.send_cq = init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &init);
	if (s->qp == NULL)
		return "ibv_create_qp";
	s->mr = ibv_reg_mr(s->pd, s->from, sizeof(s->from) + sizeof(s->to),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (s->mr == NULL)
		return "ibv_reg_mr";
	return connect_to_itself(s) == 0 ? NULL : "ibv_modify_qp";
}

bool self_open(struct self *s, const char *device)
{
	const char *failed;

	memset(s, 0, sizeof(*s));
	failed = open_objects(s, device);
	if (failed != NULL)
		fprintf(stderr, "%s failed\n", failed);
	return failed == NULL;
}

bool self_write(struct self *s)
{
	struct ibv_sge what = { .addr = (uintptr_t)s->from,
				.length = sizeof(s->from),
				.lkey = s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &what,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)s->to;
	wr.wr.rdma.rkey = s->mr->rkey;
	return ibv_post_send(s->qp, &wr, &bad) == 0;
}

bool self_written(struct self *s, bool *failed)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(s->cq, 1, &wc);

	*failed = n < 0 || (n == 1 && wc.status != IBV_WC_SUCCESS);
	return n != 0;
}

void self_close(struct self *s)
{
	if (s->mr != NULL)
		ibv_dereg_mr(s->mr);
	if (s->qp != NULL)
		ibv_destroy_qp(s->qp);
	if (s->cq != NULL)
		ibv_destroy_cq(s->cq);
	if (s->pd != NULL)
		ibv_dealloc_pd(s->pd);
	if (s->context != NULL)
		ibv_close_device(s->context);
}
