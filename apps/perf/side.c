/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of one end: a buffer, completion queues, and queue pairs that are connected. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "devices.h"
#include "perf.h"

static int complain(const char *what)
{
	fprintf(stderr, "uroce perf: %s: %s\n", what, strerror(errno));
	return 1;
}

static struct ibv_qp *qp_open(struct perf_side *s, const struct perf_options *o)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.cap = { .max_send_wr = MAX_OF(o->depth, 16u),
			 .max_recv_wr = o->depth,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = o->latency ? 64 : 0 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(s->pd, &init);
}

/* As many READs and atomics are outstanding as perftest asks for, which is the device's limit. 0: the device is gone. */
static uint8_t outstanding(struct ibv_context *c, uint32_t depth)
{
	struct ibv_device_attr a;

	if (ibv_query_device(c, &a) != 0)
		return 0;
	return (uint8_t)MIN_OF(depth, (uint32_t)MIN_OF(a.max_qp_rd_atom, UINT8_MAX));
}

int side_open(struct perf_side *s, const char *name, const struct perf_options *o)
{
	uint32_t cqe = MIN_OF(o->qps * o->depth + 1, 262143u);
	size_t octets = 4096;

	for (uint32_t i = 0; i < o->sizes; i++)
		octets = MAX_OF(octets, 2 * (size_t)o->size[i]);
	s->context = device_open(name);
	if (s->context == NULL) {
		fprintf(stderr, "uroce perf: device %s is not listed\n", name);
		return 1;
	}
	s->outstanding = outstanding(s->context, o->depth);
	if (s->outstanding == 0)
		return complain("cannot query the device");
	s->pd = ibv_alloc_pd(s->context);
	s->send_cq = ibv_create_cq(s->context, (int)cqe, NULL, NULL, 0);
	s->recv_cq = ibv_create_cq(s->context, (int)cqe, NULL, NULL, 0);
	if (s->pd == NULL || s->send_cq == NULL || s->recv_cq == NULL ||
	    posix_memalign((void **)&s->buffer, 4096, octets) != 0)
		return complain("cannot create the objects");
	memset(s->buffer, 0x5a, octets);
	s->mr = ibv_reg_mr(s->pd, s->buffer, octets,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	s->qp = calloc(o->qps, sizeof(*s->qp));
	if (s->mr == NULL || s->qp == NULL)
		return complain("cannot register the memory");
	for (uint32_t i = 0; i < o->qps; i++) {
		s->qp[i] = qp_open(s, o);
		if (s->qp[i] == NULL)
			return complain("cannot create a queue pair");
	}
	return 0;
}

static uint8_t gid_index_of(struct ibv_context *c, const union ibv_gid *gid)
{
	union ibv_gid g;

	for (int i = 0; i < 16; i++)
		if (ibv_query_gid(c, 1, i, &g) == 0 && memcmp(&g, gid, sizeof(g)) == 0)
			return (uint8_t)i;
	return 0;
}

static enum ibv_mtu mtu_code(uint32_t octets)
{
	return (enum ibv_mtu)(__builtin_ctz(octets) - 7);
}

static int refuse(int error)
{
	fprintf(stderr, "uroce perf: cannot connect a queue pair: %s\n", strerror(error));
	return 1;
}

int qp_connect(struct perf_side *from, uint32_t i, uint32_t to, uint32_t mtu)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	int err =
		ibv_modify_qp(from->qp[i], &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (err != 0)
		return refuse(err);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(mtu),
		.dest_qp_num = to,
		.max_dest_rd_atomic = from->outstanding,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = from->far_gid,
				      .hop_limit = 64,
				      .sgid_index = gid_index_of(from->context, &from->gid) } },
	};
	err = ibv_modify_qp(from->qp[i], &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	if (err != 0)
		return refuse(err);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = from->outstanding };
	err = ibv_modify_qp(from->qp[i], &a,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	return err != 0 ? refuse(err) : 0;
}

void side_close(struct perf_side *s, uint32_t qps)
{
	for (uint32_t i = 0; s->qp != NULL && i < qps; i++)
		if (s->qp[i] != NULL)
			ibv_destroy_qp(s->qp[i]);
	free(s->qp);
	if (s->mr != NULL)
		ibv_dereg_mr(s->mr);
	if (s->send_cq != NULL)
		ibv_destroy_cq(s->send_cq);
	if (s->recv_cq != NULL)
		ibv_destroy_cq(s->recv_cq);
	if (s->pd != NULL)
		ibv_dealloc_pd(s->pd);
	if (s->context != NULL)
		ibv_close_device(s->context);
	free(s->buffer);
}
