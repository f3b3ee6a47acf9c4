/* SPDX-License-Identifier: BSD-3-Clause */
#include "plain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void need(bool good, const char *what)
{
	if (good)
		return;
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void connect_plain(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t remote, int access,
		   enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = (unsigned int)access };

	need(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
		     0,
	     "to INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = remote,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = *gid, .sgid_index = 1, .hop_limit = 64 } },
	};
	need(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER) == 0,
	     "to RTR");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 18,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 4 };
	need(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	     "to RTS");
}
