/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every verb from several threads at once, on objects that they share, in random order. What a call
 * returns depends on the others. The test is that it returns nothing unexpected, that the library
 * stays consistent, and (with the thread sanitizer) that there is no data race. It is a separate
 * program, because Criterion does not work with the thread sanitizer (tests/unit/queue/threads).
 * Runs with an engine at $UROCE_SOCKET. usage: every-verb [THREADS [CALLS]]
 */
#include "every_verb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct shared all;

/* Errors that a call may return while others change the same objects. */
void tolerate(struct thread *t, int error)
{
	static const int usual[] = { 0,	     EINVAL,  EBUSY,	  ENOMEM, EAGAIN,
				     ENOENT, ENODATA, EOPNOTSUPP, EPERM };

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (error == usual[i])
			return;
	die("%s: %s", t->call, strerror(error));
}

void *made(struct thread *t, void *object)
{
	if (object == NULL)
		tolerate(t, errno);
	return object;
}

void must(struct thread *t, int error)
{
	if (error != 0)
		die("%s: what nobody else uses cannot be destroyed: %s", t->call, strerror(error));
}

int modify(struct ibv_qp *qp, enum ibv_qp_state to, uint32_t remote_qpn)
{
	struct ibv_qp_attr attr = { .qp_state = to };

	switch (to) {
	case IBV_QPS_INIT:
		attr.port_num = 1;
		attr.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		return ibv_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTR:
		attr.path_mtu = IBV_MTU_1024;
		attr.dest_qp_num = remote_qpn;
		attr.max_dest_rd_atomic = 1;
		attr.min_rnr_timer = 1;
		attr.ah_attr = all.path;
		return ibv_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER);
	case IBV_QPS_RTS:
		attr.timeout = 8;
		attr.max_rd_atomic = 1;
		return ibv_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					     IBV_QP_MAX_QP_RD_ATOMIC);
	default:
		return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	}
}

struct ibv_qp *new_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .srq = srq,
					 .cap = { 8, srq == NULL ? 8 : 0, 2, srq == NULL ? 2 : 0,
						  32 },
					 .qp_type = IBV_QPT_RC };

	return ibv_create_qp(pd, &init);
}

static struct ibv_qp *new_extended_qp(void)
{
	struct ibv_qp_init_attr_ex init = { .send_cq = ibv_cq_ex_to_cq(all.cq_ex),
					    .recv_cq = ibv_cq_ex_to_cq(all.cq_ex),
					    .cap = { 8, 8, 2, 2, 32 },
					    .qp_type = IBV_QPT_RC,
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .pd = all.pd,
					    .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
							      IBV_QP_EX_WITH_SEND |
							      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD };

	return ibv_create_qp_ex(all.context, &init);
}

static void to_rts(struct ibv_qp *qp)
{
	if (qp == NULL || modify(qp, IBV_QPS_INIT, 0) != 0 ||
	    modify(qp, IBV_QPS_RTR, qp->qp_num) != 0 || modify(qp, IBV_QPS_RTS, 0) != 0)
		die("a queue pair does not come to RTS: %m");
}

static void make_queues(void)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 256,
					  .wc_flags = IBV_WC_STANDARD_FLAGS |
						      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
					  .channel = all.channel };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 32, .max_sge = 2 } };

	all.cq = ibv_create_cq(all.context, 4096, NULL, all.channel, 0);
	all.cq_ex = ibv_create_cq_ex(all.context, &ex);
	all.srq = ibv_create_srq(all.pd, &srq);
	if (all.cq == NULL || all.cq_ex == NULL || all.srq == NULL)
		die("no queues: %m");
	all.qp = new_qp(all.pd, all.cq, NULL);
	all.restless = new_qp(all.domain, all.cq, NULL);
	all.of_srq = new_qp(all.pd, all.cq, all.srq);
	all.extended = new_extended_qp();
	to_rts(all.qp);
	to_rts(all.restless);
	to_rts(all.of_srq);
	to_rts(all.extended);
}

static void not_blocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void make_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_parent_domain_init_attr domain = { 0 };
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	all.context = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	if (all.context == NULL)
		die("there is no device: is an engine at $UROCE_SOCKET?");
	ibv_free_device_list(list);
	all.path = (struct ibv_ah_attr){ .is_global = 1,
					 .port_num = 1,
					 .grh = { .sgid_index = 1, .hop_limit = 64 } };
	ibv_query_gid(all.context, 1, 1, &all.path.grh.dgid);
	all.pd = domain.pd = ibv_alloc_pd(all.context);
	all.domain = all.pd != NULL ? ibv_alloc_parent_domain(all.context, &domain) : NULL;
	all.channel = ibv_create_comp_channel(all.context);
	all.memory = aligned_alloc(4096, MEMORY);
	if (all.domain == NULL || all.channel == NULL || all.memory == NULL)
		die("no domain: %m");
	memset(all.memory, 0, MEMORY);
	all.mr = ibv_reg_mr(all.pd, all.memory, 4096, access);
	if (all.mr == NULL)
		die("no region: %m");
	not_blocking(all.channel->fd);
	not_blocking(all.context->async_fd);
	make_queues();
}

/* All events are acknowledged, so destroying does not wait. */
static void destroy_all(void)
{
	struct thread t = { .call = "the end" };

	must(&t, ibv_destroy_qp(all.qp));
	must(&t, ibv_destroy_qp(all.restless));
	must(&t, ibv_destroy_qp(all.of_srq));
	must(&t, ibv_destroy_qp(all.extended));
	must(&t, ibv_destroy_srq(all.srq));
	must(&t, ibv_destroy_cq(all.cq));
	must(&t, ibv_destroy_cq(ibv_cq_ex_to_cq(all.cq_ex)));
	must(&t, ibv_destroy_comp_channel(all.channel));
	must(&t, ibv_dereg_mr(all.mr));
	must(&t, ibv_dealloc_pd(all.domain));
	must(&t, ibv_dealloc_pd(all.pd));
	must(&t, ibv_close_device(all.context));
	free(all.memory);
}

int main(int argc, char **argv)
{
	struct crowd crowd = { .table = { { verbs, verbs_count },
					  { more_verbs, more_verbs_count },
					  { rest_verbs, rest_verbs_count } },
			       .threads = 8,
			       .rounds = 3000 };

	crowd_arguments(&crowd, argc, argv);
	make_all();
	more_make();
	rest_make();
	crowd_run(&crowd);
	rest_destroy();
	more_destroy();
	destroy_all();
	return 0;
}
