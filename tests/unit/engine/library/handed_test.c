/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports of frames that the program hands in and takes out: two engines of one process, joined by a
 * thread that carries their frames as a forwarding program would.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "../verbs/rig/endpoint.h"
#include "library_rig.h"

#define LENGTH 20000u

static struct side {
	struct uroce_port *port;
	struct uroce_engine *engine;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t buffer[LENGTH];
} side[2];
static pthread_t carrier;
static struct rte_mempool *pool; /* of what is carried: engines end with their own */
static uint32_t stop; /* atomic */
static uint64_t carried, unwanted; /* the carrier's */

static struct uroce_port *open_port(uint8_t last)
{
	struct uroce_handed_options o = {
		.size = sizeof(o), .mac = { 2, 0, 0, 0, 0, last }, .mtu = 1500, .depth = 256
	};
	char why[256];
	struct uroce_port *p = uroce_port_handed(&o, why, sizeof(why));

	cr_assert_not_null(p, "%s", why);
	return p;
}

static void open_engine(struct side *s, uint8_t last)
{
	struct uroce_options o = library_options();
	char name[16], why[256];

	snprintf(name, sizeof(name), "side%u", last);
	o.name = name;
	o.port = s->port = open_port(last);
	o.addresses = 1;
	o.address[0] = library_address(last);
	s->engine = uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(s->engine, "%s", why);
	cr_assert_eq(uroce_register(s->engine), 0);
}

/* Reports of groups (MLDv2) are for the routers of the link, and no engine is one. */
static bool is_for_routers(const struct rte_mbuf *frame)
{
	static const uint8_t routers[6] = { 0x33, 0x33, 0, 0, 0, 0x16 };

	return memcmp(rte_pktmbuf_mtod(frame, const uint8_t *), routers, sizeof(routers)) == 0;
}

static void carry(struct side *from, struct side *to)
{
	struct rte_mbuf *frame[32];
	uint16_t n = uroce_take_out(from->port, 0, frame, 32), taken;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(frame[i], pool, 0, UINT32_MAX);

		cr_assert_not_null(copy, "the test's pool is empty");
		rte_pktmbuf_free(frame[i]);
		frame[i] = copy;
		carried++;
		unwanted += uroce_wants(to->engine, frame[i]) == is_for_routers(frame[i]);
	}
	taken = uroce_hand_in(to->port, 0, frame, n);
	for (uint16_t i = taken; i < n; i++)
		rte_pktmbuf_free(frame[i]);
}

static void *carrier_main(void *none)
{
	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0)
		for (int i = 0; i < 2; i++) {
			uroce_poll(side[i].engine, 0);
			carry(&side[i], &side[1 - i]);
		}
	return NULL;
}

static void open_objects(struct side *s, const char *name)
{
	struct ibv_qp_init_attr init = { .cap = { 16, 16, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

	s->context = library_open(name);
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
	cr_assert(s->pd != NULL && s->cq != NULL, "%m");
	init.send_cq = init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &init);
	s->mr = ibv_reg_mr(s->pd, s->buffer, LENGTH,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(s->qp != NULL && s->mr != NULL, "%m");
	cr_assert_eq(ibv_query_gid(s->context, 1, GID_INDEX, &s->gid), 0);
}

static void connect_to(struct side *s, const struct side *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = peer->gid, .sgid_index = 1, .hop_limit = 64 } },
	};

	cr_assert_eq(endpoint_to_init(s->qp), 0);
	cr_assert_eq(ibv_modify_qp(s->qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER),
		     0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = PATIENT_TIMEOUT,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 4 };
	cr_assert_eq(ibv_modify_qp(s->qp, &attr,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC),
		     0);
}

static void begin(void)
{
	library_begin();
	pool = rte_pktmbuf_pool_create("carried", 4095, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	cr_assert_not_null(pool);
	for (uint8_t i = 0; i < 2; i++)
		open_engine(&side[i], (uint8_t)(i + 1));
	cr_assert_eq(pthread_create(&carrier, NULL, carrier_main, NULL), 0);
	open_objects(&side[0], "side1");
	open_objects(&side[1], "side2");
	connect_to(&side[0], &side[1]);
	connect_to(&side[1], &side[0]);
}

static void end(void)
{
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(ibv_destroy_qp(side[i].qp), 0);
		cr_expect_eq(ibv_dereg_mr(side[i].mr), 0);
		cr_expect_eq(ibv_destroy_cq(side[i].cq), 0);
		cr_expect_eq(ibv_dealloc_pd(side[i].pd), 0);
		cr_expect_eq(ibv_close_device(side[i].context), 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(carrier, NULL);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(uroce_destroy(side[i].engine), 0);
	rte_mempool_free(pool);
	library_end();
}

TestSuite(handed, .init = begin, .fini = end, .timeout = 60);

static void write_across(void)
{
	struct ibv_sge sge = { (uintptr_t)side[0].buffer, LENGTH, side[0].mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)side[1].buffer;
	wr.wr.rdma.rkey = side[1].mr->rkey;
	cr_assert_eq(ibv_post_send(side[0].qp, &wr, &bad), 0);
	poll_completions(side[0].cq, &wc, 1, "a WRITE");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
}

/* Also that a port belongs to one engine, and is not closed under it. */
Test(handed, frames_go_through_the_program)
{
	struct uroce_options o = library_options();
	char why[256];

	memset(side[0].buffer, 'h', LENGTH);
	write_across();
	cr_expect_eq(memcmp(side[0].buffer, side[1].buffer, LENGTH), 0);
	cr_expect_eq(uroce_port_close(side[0].port), EBUSY);
	o.port = side[0].port;
	cr_expect_null(uroce_create(&o, why, sizeof(why)));
	cr_expect_not_null(strstr(why, "another engine has the port"), "%s", why);
	cr_expect_geq(carried, LENGTH / 1024 + 1);
	cr_expect_eq(unwanted, 0, "%lu frames for an engine were not recognised",
		     (unsigned long)unwanted);
}

Test(handed, wrong_queues)
{
	struct rte_mbuf *m = NULL;

	cr_expect_eq(uroce_hand_in(side[0].port, 1, &m, 1), 0);
	cr_expect_eq(uroce_take_out(side[0].port, 1, &m, 1), 0);
}

/* Programs are told that the link is down, and up again. */
Test(handed, the_link_goes_down_and_up)
{
	struct ibv_async_event event;
	struct ibv_port_attr attr;

	cr_assert_eq(uroce_set_link(side[0].port, false), 0);
	cr_assert_eq(ibv_get_async_event(side[0].context, &event), 0);
	cr_expect_eq(event.event_type, IBV_EVENT_PORT_ERR);
	ibv_ack_async_event(&event);
	cr_expect_eq(ibv_query_port(side[0].context, 1, &attr), 0);
	cr_expect_eq(attr.state, IBV_PORT_DOWN);
	cr_assert_eq(uroce_set_link(side[0].port, true), 0);
	cr_assert_eq(ibv_get_async_event(side[0].context, &event), 0);
	cr_expect_eq(event.event_type, IBV_EVENT_PORT_ACTIVE);
	ibv_ack_async_event(&event);
	write_across();
}

/* ---- a port without an engine ---- */

TestSuite(handed_port, .init = library_begin, .fini = library_end, .timeout = 60);

static uint32_t event_descriptors(void)
{
	char path[64], to[64];
	uint32_t n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, to, sizeof(to) - 1);
		to[length > 0 ? length : 0] = '\0';
		n += strstr(to, "[eventfd]") != NULL;
	}
	return n;
}

/* It wakes the lcore that sleeps on the queue. */
Test(handed_port, each_queue_has_a_bell)
{
	struct uroce_handed_options o = {
		.size = sizeof(o), .mac = { 2 }, .mtu = 1500, .queues = 3
	};
	uint32_t before = event_descriptors();
	struct uroce_port *p;
	char why[256];

	p = uroce_port_handed(&o, why, sizeof(why));
	cr_assert_not_null(p, "%s", why);
	cr_expect_eq(event_descriptors(), before + 3);
	cr_expect_eq(uroce_port_close(p), 0);
	cr_expect_eq(event_descriptors(), before);
}
