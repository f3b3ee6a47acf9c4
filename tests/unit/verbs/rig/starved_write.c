/* SPDX-License-Identifier: BSD-3-Clause */
/* Apart from starved.c: for tests that have an endpoint. */
#include <criterion/criterion.h>
#include <string.h>

#include "endpoint.h"
#include "starved.h"

#define LANDS 4096

double starved_write(struct starved *s, struct endpoint *e, uint64_t value)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, sizeof(value), e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;
	double took;

	memcpy(e->buffer, &value, sizeof(value));
	wr.wr.rdma.remote_addr = (uintptr_t)e->buffer + LANDS;
	wr.wr.rdma.rkey = e->mr->rkey;
	took = starved_request(s, e->qp[0], e->cq, &wr, &wc);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "a WRITE beside the attack: %s",
		     ibv_wc_status_str(wc.status));
	cr_assert_eq(memcmp(e->buffer + LANDS, &value, sizeof(value)), 0, "what was written");
	return took;
}
