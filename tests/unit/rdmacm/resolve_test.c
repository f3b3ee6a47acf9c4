/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resolving addresses that no host has must not delay other commands of an engine on an interface
 * while it asks the kernel. Runs with the engine of tests/unit/verbs/with_netdev.sh.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../verbs/rig/starved.h"
#include "rig.h"

#define WIRE_ADDRESS "10.77.0.1" /* the engine's */
#define COMMANDS     201
/*
 * Processor seconds of the engine for a command. Each command asked for all addresses that were
 * waited for: that took 0.8 ms beside 300 ids, and 5 ms beside 1,000 queue pairs.
 */
#define MOST	     1e-3

static struct rdma_event_channel *channel;

static void open_all(void)
{
	channel = open_channel();
}

TestSuite(resolve, .init = open_all, .timeout = 120);

/* How many processor seconds the engine takes for a command. */
static double command_time(void)
{
	struct starved s;
	double took;

	starved_open(&s);
	starved_begin(&s);
	for (int i = 0; i < COMMANDS; i++)
		rdma_destroy_id(open_id(channel, RDMA_PS_TCP));
	took = starved_command(&s) / (2 * COMMANDS);
	starved_close(&s);
	return took;
}

static void expect_no_delay(void)
{
	double took = command_time();

	cr_log_info("%.0f us", took * 1e6);
	cr_expect_not(event_waits(channel), "the kernel gave up before it was measured");
	cr_expect_lt(took, MOST, "%.0f us", took * 1e6);
}

/* The kernel asks for three seconds, and then remembers the failure. */
static void begin_resolving(struct rdma_cm_id *id, const char *nobody)
{
	struct sockaddr_in a;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, nobody, 7), 5000), 0, "%s",
		     strerror(errno));
}

Test(resolve, many_ids_resolve_an_address)
{
	enum {
		MANY = 600
	};
	static struct rdma_cm_id *id[MANY];

	for (int i = 0; i < MANY; i++) {
		id[i] = open_id(channel, RDMA_PS_TCP);
		begin_resolving(id[i], "10.77.0.98");
	}
	expect_no_delay();
	/* each resolution ends in time */
	for (int i = 0; i < MANY; i++)
		pass_event(channel, RDMA_CM_EVENT_ADDR_ERROR);
	for (int i = 0; i < MANY; i++)
		rdma_destroy_id(id[i]);
}

/* A queue pair whose path leads to a known neighbour. */
static void make_receiver(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(id->pd, &init);
	struct sockaddr_in there;

	cr_assert_not_null(qp, "%s", strerror(errno));
	cr_assert_eq(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 1000,
		.max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = 1, .hop_limit = 64 } },
	};
	address(&there, "10.77.0.2", 0);
	attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
	memcpy(attr.ah_attr.grh.dgid.raw + 12, &there.sin_addr, 4);
	cr_assert_eq(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER),
		     0);
}

Test(resolve, queue_pairs_with_a_resolved_address)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct sockaddr_in a;
	struct ibv_cq *cq;

	cr_assert_eq(system("ip neighbour replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev wire0 "
			    "nud permanent"),
		     0);
	cr_assert_eq(rdma_bind_addr(id, address(&a, WIRE_ADDRESS, 0)), 0, "%s", strerror(errno));
	cq = ibv_create_cq(id->verbs, 10, NULL, NULL, 0);
	for (int i = 0; i < 2000; i++)
		make_receiver(id, cq);
	begin_resolving(open_id(channel, RDMA_PS_TCP), "10.77.0.99");
	expect_no_delay();
}
