/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with traffic that sees its engine die, and works on the next one. It WRITEs to itself over
 * a queue pair that is connected to itself, and says what comes:
 *
 *	attached, flushed, fatal	for the first engine
 *	attached			for the second; then it ends with status 0
 *
 * Nothing of this may take more than PATIENCE. usage: attached
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 120u /* seconds */
#define RECEIVES 4
#define OCTETS	 4096u

static uint8_t memory[2 * OCTETS];

static void fail(const char *what)
{
	fprintf(stderr, "attached: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

/* The first engine exists already. The next one may need a moment. */
static struct ibv_context *open_device(void)
{
	for (;;) {
		struct ibv_device **list = ibv_get_device_list(NULL);
		struct ibv_context *context =
			list == NULL || list[0] == NULL ? NULL : ibv_open_device(list[0]);

		if (list != NULL)
			ibv_free_device_list(list);
		if (context != NULL)
			return context;
		usleep(10000); /* bounded by the alarm */
	}
}

static void connect_to_itself(struct ibv_context *context, struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) !=
	    0)
		fail("INIT");
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = qp->qp_num,
				  .min_rnr_timer = 12,
				  .ah_attr = { .is_global = 1, .port_num = 1 } };
	a.ah_attr.grh.sgid_index = 1;
	a.ah_attr.grh.hop_limit = 1;
	if (ibv_query_gid(context, 1, 1, &a.ah_attr.grh.dgid) != 0 ||
	    ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) != 0)
		fail("RTR");
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7
	};
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		fail("RTS");
}

static void post_write(struct ibv_qp *qp, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)memory, OCTETS, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)memory + OCTETS;
	wr.wr.rdma.rkey = mr->rkey;
	if (ibv_post_send(qp, &wr, &bad) != 0)
		fail("ibv_post_send");
}

static void post_receives(struct ibv_qp *qp, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	for (int i = 0; i < RECEIVES; i++)
		if (ibv_post_recv(qp, &wr, &bad) != 0)
			fail("ibv_post_recv");
}

static enum ibv_wc_status await_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	if (n < 0)
		fail("ibv_poll_cq");
	return wc.status;
}

/* WRITEs, one after the other, until one does not succeed. */
static void write_until_flushed(struct ibv_qp *qp, const struct ibv_mr *mr, struct ibv_cq *cq)
{
	enum ibv_wc_status status;

	do {
		post_write(qp, mr);
		status = await_completion(cq);
	} while (status == IBV_WC_SUCCESS);
	for (int i = 0; i < RECEIVES; i++) {
		if (status != IBV_WC_WR_FLUSH_ERR)
			fail(ibv_wc_status_str(status));
		status = await_completion(cq);
	}
	say("flushed");
}

static void await_fatal(struct ibv_context *context)
{
	struct ibv_async_event event;

	do {
		if (ibv_get_async_event(context, &event) != 0)
			fail("ibv_get_async_event");
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_DEVICE_FATAL);
	say("fatal");
}

static void attach(bool to_the_end)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr = pd == NULL
				    ? NULL
				    : ibv_reg_mr(pd, memory, sizeof(memory),
						 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 4,
						  .max_recv_wr = RECEIVES,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };
	struct ibv_qp *qp = mr == NULL || cq == NULL ? NULL : ibv_create_qp(pd, &init);

	if (qp == NULL)
		fail("objects");
	connect_to_itself(context, qp);
	post_receives(qp, mr);
	post_write(qp, mr);
	if (await_completion(cq) != IBV_WC_SUCCESS)
		fail("WRITE");
	say("attached");
	if (to_the_end) {
		write_until_flushed(qp, mr, cq);
		await_fatal(context);
	}
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
}

int main(void)
{
	alarm(PATIENCE);
	attach(true);
	attach(false);
	return 0;
}
