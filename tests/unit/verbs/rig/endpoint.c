/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct ibv_context *open_device(const char **failed)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	int n;

	list = ibv_get_device_list(&n);
	*failed = "ibv_get_device_list: does the engine at $UROCE_SOCKET answer?";
	if (n == 1) {
		context = ibv_open_device(list[0]);
		*failed = context == NULL ? "ibv_open_device" : NULL;
	}
	ibv_free_device_list(list);
	return context;
}

struct ibv_context *open_only_device(void)
{
	const char *failed;
	struct ibv_context *context = open_device(&failed);

	cr_assert_null(failed, "%s: %m", failed);
	return context;
}

struct ibv_qp *endpoint_create_qp(struct endpoint *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { DEPTH, DEPTH, 4, 4, 128 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(e->pd, &init);
}

int endpoint_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct ibv_qp *qp, const union ibv_gid *remote, uint32_t remote_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = remote_qpn,
		.rq_psn = 0xfffffe, /* soon across the wrap */
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = *remote, .sgid_index = GID_INDEX, .hop_limit = 64 } },
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ibv_qp *qp, uint8_t timeout)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 0xfffffe,
		.timeout = timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int connect_to(struct ibv_qp *qp, const union ibv_gid *remote, uint32_t remote_qpn,
		      uint8_t timeout)
{
	int error = endpoint_to_init(qp);

	if (error == 0)
		error = to_rtr(qp, remote, remote_qpn);
	return error != 0 ? error : to_rts(qp, timeout);
}

int endpoint_connect_for(struct endpoint *e, struct ibv_qp *qp, uint32_t remote_qpn,
			 uint8_t timeout)
{
	return connect_to(qp, &e->gid, remote_qpn, timeout);
}

int endpoint_connect_far(struct ibv_qp *qp, const union ibv_gid *remote, uint32_t remote_qpn)
{
	return connect_to(qp, remote, remote_qpn, PATIENT_TIMEOUT);
}

int endpoint_connect(struct endpoint *e, struct ibv_qp *qp, uint32_t remote_qpn)
{
	return endpoint_connect_for(e, qp, remote_qpn, PATIENT_TIMEOUT);
}

static const char *make_objects(struct endpoint *e)
{
	e->pd = ibv_alloc_pd(e->context);
	if (e->pd == NULL)
		return "ibv_alloc_pd";
	e->channel = ibv_create_comp_channel(e->context);
	if (e->channel == NULL)
		return "ibv_create_comp_channel";
	e->cq = ibv_create_cq(e->context, 4 * DEPTH, e, e->channel, 0);
	if (e->cq == NULL)
		return "ibv_create_cq";
	e->buffer = aligned_alloc(4096, BUFFER);
	memset(e->buffer, 0, BUFFER);
	e->mr = ibv_reg_mr(e->pd, e->buffer, BUFFER,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	return e->mr != NULL ? NULL : "ibv_reg_mr";
}

static const char *make_pair(struct endpoint *e)
{
	if (ibv_query_gid(e->context, 1, GID_INDEX, &e->gid) != 0)
		return "ibv_query_gid";
	for (int i = 0; i < 2; i++) {
		e->qp[i] = endpoint_create_qp(e);
		if (e->qp[i] == NULL)
			return "ibv_create_qp";
	}
	for (int i = 0; i < 2; i++) {
		errno = endpoint_connect(e, e->qp[i], e->qp[1 - i]->qp_num);
		if (errno != 0)
			return i == 0 ? "queue pair 0 does not go to RTS"
				      : "queue pair 1 does not go to RTS";
	}
	return NULL;
}

const char *endpoint_try(struct endpoint *e)
{
	const char *failed;

	memset(e, 0, sizeof(*e));
	e->context = open_device(&failed);
	if (failed == NULL)
		failed = make_objects(e);
	return failed != NULL ? failed : make_pair(e);
}

void endpoint_open(struct endpoint *e)
{
	const char *failed = endpoint_try(e);

	cr_assert_null(failed, "%s: %m", failed);
}

void endpoint_close(struct endpoint *e)
{
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_qp(e->qp[i]), 0);
	cr_expect_eq(ibv_dereg_mr(e->mr), 0);
	cr_expect_eq(ibv_destroy_cq(e->cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(e->channel), 0);
	cr_expect_eq(ibv_dealloc_pd(e->pd), 0);
	cr_expect_eq(ibv_close_device(e->context), 0);
	free(e->buffer);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void poll_completions(struct ibv_cq *cq, struct ibv_wc *wc, int n, const char *what)
{
	double until = now() + WAIT_SECONDS;
	int got = 0;

	while (got < n) {
		int more = ibv_poll_cq(cq, n - got, wc + got);

		cr_assert_geq(more, 0, "%s: ibv_poll_cq gives %d", what, more);
		got += more;
		cr_assert(now() < until, "%s: %d of %d completions came", what, got, n);
	}
}
