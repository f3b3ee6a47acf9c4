/* SPDX-License-Identifier: BSD-3-Clause */
#include "export.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define OPERATIONS 3 /* one WRITE, two FETCH_ADDs */

struct export
{
	struct rdma_cm_id *id;
	struct flow_table *flows;
	struct ibv_mr *mr, *before_mr;
	struct flow_place place;
	uint64_t before[2]; /* what FETCH_ADD returns: the totals before */
	struct flow_totals told; /* what we have added so far */
};

static struct rdma_cm_id *connect_to(const char *host, const char *service)
{
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = OPERATIONS,
						  .max_recv_wr = 1,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .sq_sig_all = 1 };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;
	struct rdma_conn_param parameters = { .initiator_depth = OPERATIONS,
					      .retry_count = 7,
					      .rnr_retry_count = 7 };
	struct rdma_cm_id *id = NULL;

	if (rdma_getaddrinfo(host, service, &hints, &to) != 0)
		return NULL;
	if (rdma_create_ep(&id, to, NULL, &init) == 0 && rdma_connect(id, &parameters) != 0) {
		rdma_destroy_ep(id);
		id = NULL;
	}
	rdma_freeaddrinfo(to);
	return id;
}

/* The collector's answer says where to write. */
static bool read_place(struct export *x)
{
	const struct rdma_conn_param *p = &x->id->event->param.conn;
	struct flow_place net;

	if (p->private_data_len < sizeof(net))
		return false;
	memcpy(&net, p->private_data, sizeof(net));
	x->place.totals = be64toh(net.totals);
	x->place.table = be64toh(net.table);
	x->place.rkey = be32toh(net.rkey);
	x->place.flows = be32toh(net.flows);
	return x->place.flows >= FLOWS;
}

static bool open_objects(struct export *x)
{
	uint32_t used;
	struct flow *table = flows_used(x->flows, &used);

	if (!read_place(x))
		return false;
	x->mr = rdma_reg_msgs(x->id, table, FLOWS * sizeof(*table));
	x->before_mr = rdma_reg_msgs(x->id, x->before, sizeof(x->before));
	return x->mr != NULL && x->before_mr != NULL;
}

struct export *export_open(const char *host, const char *service, struct flow_table *flows)
{
	struct export *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return NULL;
	x->flows = flows;
	x->id = connect_to(host, service);
	if (x->id != NULL && open_objects(x))
		return x;
	perror("cannot connect to the collector");
	export_close(x);
	return NULL;
}

static bool post_add(struct export *x, int which, uint64_t amount)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&x->before[which],
			       .length = sizeof(x->before[which]),
			       .lkey = x->before_mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD },
			   *bad;

	wr.wr.atomic.remote_addr = x->place.totals + (uint64_t)which * sizeof(uint64_t);
	wr.wr.atomic.rkey = x->place.rkey;
	wr.wr.atomic.compare_add = amount;
	return ibv_post_send(x->id->qp, &wr, &bad) == 0;
}

static bool await(struct export *x, int completions)
{
	struct ibv_wc wc;

	while (completions-- > 0)
		if (rdma_get_send_comp(x->id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
			return false;
	return true;
}

bool export_now(struct export *x)
{
	struct flow_totals now = { 0 };
	uint32_t n;
	struct flow *flow = flows_used(x->flows, &n);

	for (uint32_t i = 0; i < n; i++) { /* whole words, see flows.c */
		now.packets += __atomic_load_n(&flow[i].packets, __ATOMIC_RELAXED);
		now.octets += __atomic_load_n(&flow[i].octets, __ATOMIC_RELAXED);
	}
	if (now.packets == x->told.packets)
		return true;
	if (rdma_post_write(x->id, NULL, flow, n * sizeof(*flow), x->mr, 0, x->place.table,
			    x->place.rkey) != 0 ||
	    !post_add(x, 0, now.packets - x->told.packets) ||
	    !post_add(x, 1, now.octets - x->told.octets) || !await(x, OPERATIONS))
		return false;
	x->told = now;
	return true;
}

void export_close(struct export *x)
{
	if (x->mr != NULL)
		rdma_dereg_mr(x->mr);
	if (x->before_mr != NULL)
		rdma_dereg_mr(x->before_mr);
	if (x->id != NULL) {
		rdma_disconnect(x->id);
		rdma_destroy_ep(x->id);
	}
	free(x);
}
