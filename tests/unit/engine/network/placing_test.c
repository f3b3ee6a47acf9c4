/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs live where their peers' packets arrive: the rule by which their lcore is chosen, and two engines of
 * two lcores each whose ports spread packets by their UDP source port, joined by a cable.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "../verbs/rig/endpoint.h"
#include "base/bits.h"
#include "control/control.h"
#include "control/network/placing.h"
#include "queue/pointers.h"
#include "rig/control_rig.h"
#include "drivers/port.h"
#include "lcore/inside.h"

#define QUEUES	    2u
#define LENGTH	    5000u
#define CONNECTIONS 16
#define FIRST_HOST  1

/* ---- the rule ---- */

static const struct {
	uint32_t placed[4];
	uint32_t lcores, now, arrives, chosen;
} choices[] = {
	{ { 0, 0 }, 2, 0, 1, 1 },
	{ { 1, 1 }, 2, 0, 1, 1 },
	/* one more than its share: it stays, or goes to the lcore with the fewest */
	{ { 0, 1 }, 2, 0, 1, 0 },
	{ { 0, 1 }, 2, 1, 1, 0 },
	{ { 5, 5, 4, 6 }, 4, 1, 3, 2 },
	/* with many, an eighth more than an even share does no harm */
	{ { 800, 820 }, 2, 0, 1, 1 },
	{ { 800, 920 }, 2, 0, 1, 0 },
	{ { 0, 0, 0, 0 }, 4, 2, 3, 3 },
};

Test(placing, an_lcore_is_chosen)
{
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		cr_expect_eq(placing_choose(choices[i].placed, choices[i].lcores, choices[i].now,
					    choices[i].arrives),
			     choices[i].chosen, "row %zu", i);
}

/* However the packets of peers arrive, no lcore gets many more than another. */
Test(placing, the_lcores_stay_even)
{
	uint32_t placed[3] = { 0 }, i;

	for (i = 0; i < 3000; i++)
		placed[placing_choose(placed, 3, i % 3, 0)]++;
	cr_expect_leq(placed[0], placed[1] + 1 + 3000 / 24);
	cr_expect_geq(placed[1], 900);
	cr_expect_geq(placed[2], 900);
}

/* ---- the cable ---- */

static struct side {
	struct port port;
	struct rte_ring *in[QUEUES];
	struct engine *engine;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t buffer[LENGTH];
} side[2];
static struct rte_mempool *pool; /* of what is on the cable: engines end with their own */
static pthread_t poller;
static uint32_t stop; /* atomic */

static uint16_t queue_of(struct port *p, const struct gid *from, const struct gid *to,
			 uint16_t source_port)
{
	return source_port % QUEUES;
}

/* Everything that is not RoCE arrives at the first queue. */
static uint16_t arrival(const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->data_len < 42 || f[12] != 8 || f[13] != 0 || f[23] != 17 ||
	    (f[36] << 8 | f[37]) != ROCE_UDP_PORT)
		return 0;
	return queue_of(NULL, NULL, NULL, (uint16_t)(f[34] << 8 | f[35]));
}

static uint16_t rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct side *s = container_of_type(p, struct side, port);

	return (uint16_t)pointers_take(s->in[queue], (void **)m, n);
}

static uint16_t tx_burst(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct side *to = &side[p == &side[0].port];
	uint16_t i;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(m[i], pool, 0, UINT32_MAX);

		if (copy == NULL || !pointer_put(to->in[arrival(copy)], copy)) {
			rte_pktmbuf_free(copy);
			break;
		}
		rte_pktmbuf_free(m[i]);
	}
	return i;
}

static int bell_fd(struct port *p, uint16_t queue)
{
	return -1;
}

static bool refresh(struct port *p)
{
	return false;
}

static void close_port(struct port *p)
{
}

static const struct port_ops ops = { .rx_burst = rx_burst,
				     .tx_burst = tx_burst,
				     .bell_fd = bell_fd,
				     .refresh = refresh,
				     .queue_of = queue_of,
				     .close = close_port };

static void *poll_all(void *none)
{
	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0)
		for (uint32_t i = 0; i < 2 * QUEUES; i++)
			uroce_poll((struct uroce_engine *)side[i % 2].engine, i / 2);
	return NULL;
}

/* Before the first engine: it sends at once. */
static void lay_cable(struct side *s, uint8_t host)
{
	char name[16];

	for (uint32_t i = 0; i < QUEUES; i++) {
		snprintf(name, sizeof(name), "in%u-%u", host, i);
		s->in[i] = rte_ring_create(name, 1024, SOCKET_ID_ANY, 0);
		cr_assert_not_null(s->in[i]);
	}
}

static void open_engine(struct side *s, uint8_t host)
{
	struct uroce_options o = { .size = sizeof(o),
				   .lcores = QUEUES,
				   .socket_gid = -1,
				   .pool_size = 4096,
				   .port = (struct uroce_port *)&s->port,
				   .addresses = 1,
				   .address = { { .octet = { [10] = 0xff, 0xff, 10, 9, 0, host },
						  .prefix = 24 } } };
	char name[16], why[256] = "";

	snprintf(name, sizeof(name), "side%u", host);
	o.name = name;
	s->port = (struct port){ .ops = &ops,
				 .name = "cable",
				 .mac = { { 2, 0, 0, 0, 0, host } },
				 .mtu = 1500,
				 .queues = QUEUES,
				 .socket = -1,
				 .node = -1,
				 .link_up = true,
				 .nap = LIMIT_PORT_NAP };
	s->engine = (struct engine *)uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(s->engine, "%s", why);
	cr_assert_eq(uroce_register((struct uroce_engine *)s->engine), 0);
}

static void open_objects(struct side *s, uint8_t host)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	char name[16];

	snprintf(name, sizeof(name), "side%u", host);
	for (int i = 0; list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			s->context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	cr_assert_not_null(s->context, "%s cannot be opened", name);
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 256, NULL, NULL, 0);
	s->mr = ibv_reg_mr(s->pd, s->buffer, LENGTH,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(s->pd != NULL && s->cq != NULL && s->mr != NULL, "%m");
	cr_assert_eq(ibv_query_gid(s->context, 1, GID_INDEX, &s->gid), 0);
}

static void begin(void)
{
	setenv("UROCE_SOCKET", "/nonexistent", 1); /* nobody but ourselves */
	snprintf(path, sizeof(path), "/tmp/uroce-placing-test-%d.sock", getpid());
	control_rig_make(); /* the EAL; its engine is not used */
	pool = rte_pktmbuf_pool_create("cable", 4095, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	cr_assert_not_null(pool);
	for (uint8_t i = 0; i < 2; i++)
		lay_cable(&side[i], (uint8_t)(FIRST_HOST + i));
	for (uint8_t i = 0; i < 2; i++)
		open_engine(&side[i], (uint8_t)(FIRST_HOST + i));
	cr_assert_eq(pthread_create(&poller, NULL, poll_all, NULL), 0);
	for (uint8_t i = 0; i < 2; i++)
		open_objects(&side[i], (uint8_t)(FIRST_HOST + i));
}

static void end(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		ibv_dereg_mr(side[i].mr);
		ibv_destroy_cq(side[i].cq);
		ibv_dealloc_pd(side[i].pd);
		ibv_close_device(side[i].context);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(poller, NULL);
	for (uint32_t i = 0; i < 2; i++)
		uroce_destroy((struct uroce_engine *)side[i].engine);
	control_rig_close();
}

TestSuite(placed, .init = begin, .fini = end, .timeout = 120);

/* ---- connections over it ---- */

static struct ibv_qp *create(struct side *s)
{
	struct ibv_qp_init_attr init = { .cap = { 16, 16, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .send_cq = s->cq,
					 .recv_cq = s->cq };
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	cr_assert_not_null(qp, "%m");
	return qp;
}

static void connect_both(struct ibv_qp *qp[2])
{
	for (int i = 0; i < 2; i++)
		cr_assert_eq(endpoint_connect_far(qp[i], &side[1 - i].gid, qp[1 - i]->qp_num), 0);
}

static uint32_t lcore_of(const struct side *s, const struct ibv_qp *qp)
{
	const struct engine_qp *q = directory_find(s->engine, qp->qp_num);

	cr_assert_not_null(q);
	return qp_lcore(q)->index;
}

/* Whether what the peer sends arrives where the queue pair is. */
static bool is_at_home(struct ibv_qp *qp[2], int i)
{
	uint16_t port = flow_source_port(0, qp[1 - i]->qp_num, qp[i]->qp_num);

	return lcore_of(&side[i], qp[i]) == queue_of(NULL, NULL, NULL, port);
}

static uint64_t crossed(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < 2 * QUEUES; i++)
		n += __atomic_load_n(&side[i % 2].engine->lcore[i / 2].stats.crossed,
				     __ATOMIC_RELAXED);
	return n;
}

static void write_across(struct ibv_qp *qp[2], int from)
{
	struct side *s = &side[from], *to = &side[1 - from];
	struct ibv_sge sge = { (uintptr_t)s->buffer, LENGTH, s->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED };
	static uint8_t value;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)to->buffer;
	wr.wr.rdma.rkey = to->mr->rkey;
	memset(s->buffer, ++value, LENGTH);
	cr_assert_eq(ibv_post_send(qp[from], &wr, &bad), 0);
	poll_completions(s->cq, &wc, 1, "a WRITE over the cable");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_assert_eq(memcmp(to->buffer, s->buffer, LENGTH), 0);
}

/* Both directions; no frame crosses if both queue pairs are at home, and some do otherwise. */
static void use(struct ibv_qp *qp[2])
{
	bool home = is_at_home(qp, 0) && is_at_home(qp, 1);
	uint64_t before = crossed();

	write_across(qp, 0);
	write_across(qp, 1);
	if (home)
		cr_expect_eq(crossed(), before, "frames crossed");
	else
		cr_expect_gt(crossed(), before);
}

Test(placed, packets_arrive_at_their_lcore)
{
	struct ibv_qp *qp[CONNECTIONS][2];
	uint32_t moved = 0, home = 0;

	for (int n = 0; n < CONNECTIONS; n++) {
		for (int i = 0; i < 2; i++)
			qp[n][i] = create(&side[i]);
		connect_both(qp[n]);
		for (int i = 0; i < 2; i++) {
			moved += lcore_of(&side[i], qp[n][i]) != (qp[n][i]->qp_num & 15);
			home += is_at_home(qp[n], i);
		}
		use(qp[n]);
	}
	cr_expect_gt(moved, 0, "none was moved");
	cr_expect_geq(home, CONNECTIONS, "only %u of %d are where their packets arrive", home,
		      2 * CONNECTIONS);
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t *placed = side[i].engine->control->placed;

		cr_expect_eq(placed[0] + placed[1], CONNECTIONS);
		cr_expect_leq(abs((int)placed[0] - (int)placed[1]), 2);
	}
	for (int n = 0; n < CONNECTIONS; n++)
		for (int i = 0; i < 2; i++)
			ibv_destroy_qp(qp[n][i]);
	for (uint32_t i = 0; i < 2; i++)
		cr_expect_eq(
			side[i].engine->control->placed[0] + side[i].engine->control->placed[1], 0);
}

/* After RESET it is connected to another one, again and again: it moves, and its doorbells are heard. */
Test(placed, each_connection_has_its_place)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *one = create(&side[0]);

	for (int n = 0; n < CONNECTIONS; n++) {
		struct ibv_qp *qp[2] = { one, create(&side[1]) };

		connect_both(qp);
		cr_expect(is_at_home(qp, 0), "nothing else is connected");
		use(qp);
		cr_assert_eq(ibv_modify_qp(one, &reset, IBV_QP_STATE), 0);
		cr_assert_eq(ibv_destroy_qp(qp[1]), 0);
	}
	ibv_destroy_qp(one);
}
