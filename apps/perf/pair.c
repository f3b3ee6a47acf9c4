/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines whose ports are joined by two rings, with connected queue pairs:
 *
 *	perf0 10.99.0.1 --tx--> ring 0 --rx--> perf1 10.99.0.2
 *	                 <--rx-- ring 1 <--tx--
 */
#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_launch.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/bits.h"
#include "control/statistics.h"
#include "drivers/ethdev/ethdev.h"
#include "engine/uroce.h"
#include "load.h"
#include "perf.h"
#include "protocol/command.h"

#define RING_SLOTS   1024u
#define PORT_MTU     4200u
#define POOL_BUFFERS 8191u

/*
 * Puts EAL's lcores 0 and, if `two`, 1 on the first CPUs that this process may use. False: too few.
 */
static bool choose_cpus(bool two, char *lcores, size_t size)
{
	int cpu[2], n = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return false;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	if (n < 1 + two)
		return false;
	if (two)
		snprintf(lcores, size, "0@%d,1@%d", cpu[0], cpu[1]);
	else
		snprintf(lcores, size, "0@%d", cpu[0]);
	return true;
}

int pair_eal(const struct perf_options *o)
{
	char memory[16], prefix[32], lcores[32];
	char *argv[] = { "uroce-perf", "--lcores",	 lcores,
			 "--no-huge",  "--no-shconf",	 "--no-pci",
			 "-m",	       memory,		 "--file-prefix",
			 prefix,       "--no-telemetry", "--log-level",
			 "*:error",    "--log-level",	 "uroce:notice",
			 NULL };

	if (!choose_cpus(o->placement != PLACE_ONE, lcores, sizeof(lcores))) {
		fputs("uroce perf: this placement needs two cores\n", stderr);
		return 1;
	}
	snprintf(memory, sizeof(memory), "%u", o->memory);
	snprintf(prefix, sizeof(prefix), "uroce-perf-%d", (int)getpid());
	rte_openlog_stream(stderr); /* stdout is for the figures */
	if (rte_eal_init((int)ARRAY_SIZE(argv) - 1, argv) < 0) {
		fputs("uroce perf: the DPDK environment did not start; try --memory with less\n",
		      stderr);
		return 1;
	}
	return 0;
}

/* A pool of buffers, each large enough for a frame with 4 KiB of payload. */
static struct rte_mempool *pool_make(const char *name)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		name, POOL_BUFFERS, 256, 0,
		(uint16_t)(RTE_PKTMBUF_HEADROOM + ethdev_mbuf_octets(PORT_MTU)),
		(int)rte_socket_id());

	if (pool == NULL)
		fputs("uroce perf: no memory for packet buffers; try --memory with more\n", stderr);
	return pool;
}

static struct uroce_port *joined_port(const char *name, struct rte_ring *rx, struct rte_ring *tx,
				      struct rte_mempool *pool)
{
	char device[RTE_ETH_NAME_MAX_LEN], why[160];
	struct uroce_port_options eo = {
		.size = sizeof(eo), .name = device, .mtu = PORT_MTU, .pool = pool
	};
	struct uroce_port *port;

	if (rte_eth_from_rings(name, &rx, 1, &tx, 1, rte_socket_id()) < 0) {
		fprintf(stderr, "uroce perf: cannot create port %s\n", name);
		return NULL;
	}
	snprintf(device, sizeof(device), "net_ring_%s", name); /* the driver's name for it */
	port = uroce_port_open(&eo, why, sizeof(why));
	if (port == NULL)
		fprintf(stderr, "uroce perf: %s\n", why);
	return port;
}

/* Not uroce0: an engine that serves this host may have that name. */
static const char *const device_names[2] = { "perf0", "perf1" };

static int engine_open(struct perf_side *s, const char *name, const char *address,
		       struct rte_ring *rx, struct rte_ring *tx)
{
	struct uroce_options eo = {
		.size = sizeof(eo), .name = name, .lcores = 1, .addresses = 1, .socket_gid = -1
	};
	struct in_addr in;
	char why[160];
	int error;

	eo.address[0].octet[10] = eo.address[0].octet[11] = 0xff;
	inet_pton(AF_INET, address, &in);
	memcpy(&eo.address[0].octet[12], &in, 4);
	eo.address[0].prefix = 24;
	eo.pool = pool_make(name);
	if (eo.pool == NULL)
		return 1;
	eo.port = joined_port(name, rx, tx, eo.pool);
	if (eo.port == NULL)
		return 1;
	s->engine = uroce_create(&eo, why, sizeof(why));
	if (s->engine == NULL) {
		fprintf(stderr, "uroce perf: %s\n", why);
		return 1;
	}
	memcpy(s->gid.raw, eo.address[0].octet, 16);
	error = uroce_register(s->engine);
	if (error != 0)
		fprintf(stderr, "uroce perf: cannot list %s: %s\n", name,
			error == ENOENT ? "the libibverbs.so.1 in use is not uroce's"
					: strerror(error));
	return error;
}

static struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = NULL;

	for (uint32_t i = 0; list != NULL && list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			c = ibv_open_device(list[i]);
	if (list != NULL)
		ibv_free_device_list(list);
	if (c == NULL)
		fprintf(stderr, "uroce perf: device %s is not listed\n", name);
	return c;
}

static int objects_open(struct perf_side *s, const char *name, const struct perf_options *o)
{
	uint32_t cqe = MIN_OF(o->qps * o->depth + 1, 262143u);
	size_t octets = 4096;

	for (uint32_t i = 0; i < o->sizes; i++)
		octets = MAX_OF(octets, 2 * (size_t)o->size[i]);
	s->context = device_open(name);
	if (s->context == NULL)
		return 1;
	s->pd = ibv_alloc_pd(s->context);
	s->send_cq = ibv_create_cq(s->context, (int)cqe, NULL, NULL, 0);
	s->recv_cq = ibv_create_cq(s->context, (int)cqe, NULL, NULL, 0);
	if (s->pd == NULL || s->send_cq == NULL || s->recv_cq == NULL ||
	    posix_memalign((void **)&s->buffer, 4096, octets) != 0)
		return 1;
	memset(s->buffer, 0x5a, octets);
	s->mr = ibv_reg_mr(s->pd, s->buffer, octets,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	s->qp = calloc(o->qps, sizeof(*s->qp));
	return s->mr == NULL || s->qp == NULL;
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

static int qp_connect(struct perf_side *from, struct perf_side *to, uint32_t i, uint32_t mtu)
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
		return err;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(mtu),
		.dest_qp_num = to->qp[i]->qp_num,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = to->gid,
				      .hop_limit = 64,
				      .sgid_index = gid_index_of(from->context, &from->gid) } },
	};
	err = ibv_modify_qp(from->qp[i], &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	if (err != 0)
		return err;
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 16 };
	return ibv_modify_qp(from->qp[i], &a,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int qps_open(struct perf_pair *p)
{
	const struct perf_options *o = p->options;

	for (uint32_t i = 0; i < o->qps; i++) {
		p->a.qp[i] = qp_open(&p->a, o);
		p->b.qp[i] = qp_open(&p->b, o);
		if (p->a.qp[i] == NULL || p->b.qp[i] == NULL) {
			perror("uroce perf: ibv_create_qp");
			return 1;
		}
		if (qp_connect(&p->a, &p->b, i, o->mtu) != 0 ||
		    qp_connect(&p->b, &p->a, i, o->mtu) != 0) {
			fputs("uroce perf: ibv_modify_qp failed\n", stderr);
			return 1;
		}
		if (receives_post(p, i, o->depth) != 0)
			return 1;
	}
	return 0;
}

static int other_lcore_main(void *arg)
{
	struct perf_pair *p = arg;
	bool apart = p->options->placement == PLACE_APART;

	while (__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE) == 0) {
		uroce_poll(p->b.engine, 0);
		if (apart)
			uroce_poll(p->a.engine, 0);
	}
	return 0;
}

void pair_poll(struct perf_pair *p)
{
	if (p->options->placement == PLACE_APART)
		return;
	uroce_poll(p->a.engine, 0);
	if (p->options->placement == PLACE_ONE)
		uroce_poll(p->b.engine, 0);
}

void pair_count(const struct perf_pair *p, uint64_t *sent, uint64_t *again)
{
	struct reply_statistics of_a, of_b;

	uroce_statistics(p->a.engine, &of_a);
	uroce_statistics(p->b.engine, &of_b);
	*sent = of_a.tx_packets + of_b.tx_packets;
	*again = of_a.retransmitted + of_b.retransmitted;
}

static int engines_open(struct perf_pair *p)
{
	struct rte_ring *there = rte_ring_create("perf-there", RING_SLOTS, (int)rte_socket_id(),
						 RING_F_SP_ENQ | RING_F_SC_DEQ);
	struct rte_ring *back = rte_ring_create("perf-back", RING_SLOTS, (int)rte_socket_id(),
						RING_F_SP_ENQ | RING_F_SC_DEQ);

	if (there == NULL || back == NULL) {
		fputs("uroce perf: no memory for the rings; try --memory with more\n", stderr);
		return 1;
	}
	return engine_open(&p->a, device_names[0], "10.99.0.1", back, there) ||
	       engine_open(&p->b, device_names[1], "10.99.0.2", there, back);
}

int pair_open(struct perf_pair *p, const struct perf_options *o)
{
	*p = (struct perf_pair){ .options = o };
	p->other_lcore = rte_get_next_lcore(-1, 1, 0);
	if (engines_open(p) != 0)
		return 1;
	if (objects_open(&p->a, device_names[0], o) != 0 ||
	    objects_open(&p->b, device_names[1], o) != 0) {
		perror("uroce perf: cannot create the objects");
		return 1;
	}
	if (qps_open(p) != 0)
		return 1;
	if (o->placement != PLACE_ONE)
		return rte_eal_remote_launch(other_lcore_main, p, p->other_lcore);
	return 0;
}

static void side_close(struct perf_side *s, uint32_t qps)
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
	if (s->engine != NULL)
		uroce_destroy(s->engine);
}

void pair_close(struct perf_pair *p)
{
	__atomic_store_n(&p->stop, 1, __ATOMIC_RELEASE);
	if (p->options->placement != PLACE_ONE)
		rte_eal_wait_lcore(p->other_lcore);
	side_close(&p->a, p->options->qps);
	side_close(&p->b, p->options->qps);
}
