/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses where nobody is, while an engine on an interface has other things to do: what it asks
 * the kernel does not keep programs waiting. Runs beside tests/unit/verbs/with_netdev.sh's engine.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rig.h"

#define WIRE_ADDRESS "10.77.0.1" /* of the engine */
#define COMMANDS     201
#define TIMES	     20 /* slower is allowed; it was a hundred times */

static struct rdma_event_channel *channel;

static void open_all(void)
{
	channel = open_channel();
}

TestSuite(resolve, .init = open_all, .timeout = 120);

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* How long a command takes, the median of some. */
static double command_time(void)
{
	const struct timespec nap = { .tv_nsec = 500000 };
	double took[COMMANDS];

	for (int i = 0; i < COMMANDS; i++) {
		double began = seconds();

		rdma_destroy_id(open_id(channel, RDMA_PS_TCP));
		took[i] = (seconds() - began) / 2;
		nanosleep(&nap, NULL);
	}
	qsort(took, COMMANDS, sizeof(took[0]), compare);
	return took[COMMANDS / 2];
}

/* The kernel asks for three seconds, and then remembers that nobody is there. */
static void begin_resolving(struct rdma_cm_id *id, const char *nobody)
{
	struct sockaddr_in a;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, nobody, 7), 5000), 0, "%s",
		     strerror(errno));
}

Test(resolve, many_ids_that_wait_for_an_address)
{
	enum {
		MANY = 600
	};
	static struct rdma_cm_id *id[MANY];
	double alone = command_time(), among;

	for (int i = 0; i < MANY; i++) {
		id[i] = open_id(channel, RDMA_PS_TCP);
		begin_resolving(id[i], "10.77.0.98");
	}
	among = command_time();
	cr_expect(!event_waits(channel), "nobody answers");
	cr_expect_lt(among, TIMES * alone, "%.0f us, alone %.0f", among * 1e6, alone * 1e6);
	/* each comes to its end, in time */
	for (int i = 0; i < MANY; i++)
		pass_event(channel, RDMA_CM_EVENT_ADDR_ERROR);
	for (int i = 0; i < MANY; i++)
		rdma_destroy_id(id[i]);
}

/* A queue pair on its way to a neighbour that is known. */
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

Test(resolve, queue_pairs_that_have_theirs)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	double alone = command_time(), beside;
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
	beside = command_time();
	cr_expect(!event_waits(channel), "nobody answers");
	cr_expect_lt(beside, TIMES * alone, "%.0f us, alone %.0f", beside * 1e6, alone * 1e6);
}
