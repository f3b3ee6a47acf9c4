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

#include <rte_bus_vdev.h>
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
#include "drivers/buffers.h"
#include "drivers/eal_search.h"
#include "drivers/ethdev/ethdev.h"
#include "drivers/net_impair/live.h"
#include "engine/uroce.h"
#include "load.h"
#include "perf.h"
#include "protocol/command.h"

#define ONE	 4294967296.0 /* probability 1, as net_impair has it */
#define PORT_MTU 4200u

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
	static const char *const drivers[] = { "bus_vdev.so", "mempool_ring.so", "net_ring.so" };

	if (!choose_cpus(o->placement != PLACE_ONE, lcores, sizeof(lcores))) {
		fputs("uroce perf: this placement needs two cores\n", stderr);
		return 1;
	}
	snprintf(memory, sizeof(memory), "%u", o->memory);
	snprintf(prefix, sizeof(prefix), "uroce-perf-%d", (int)getpid());
	eal_search_want(drivers, ARRAY_SIZE(drivers));
	rte_openlog_stream(stderr); /* stdout is for the figures */
	if (rte_eal_init((int)ARRAY_SIZE(argv) - 1, argv) < 0) {
		fputs("uroce perf: the DPDK environment did not start; try --memory with less\n",
		      stderr);
		return 1;
	}
	return 0;
}

/* A pool of buffers, each large enough for a frame with 4 KiB of payload. As an engine's, they are not in the EAL's memory. */
static struct rte_mempool *pool_make(const char *name)
{
	struct rte_mempool *pool = buffers_make_private(
		name, PERF_PORT_BUFFERS, 256,
		(uint16_t)(RTE_PKTMBUF_HEADROOM + ethdev_mbuf_octets(PORT_MTU)), 0);

	if (pool == NULL)
		fputs("uroce perf: no memory for packet buffers\n", stderr);
	return pool;
}

/* Puts net_impair in front of this port; *name becomes the name of that device. */
static int impair_port(char *device, const char *name)
{
	char front[RTE_ETH_NAME_MAX_LEN], arguments[160];

	snprintf(front, sizeof(front), "net_impair_%s", name);
	snprintf(arguments, sizeof(arguments), "port=%s,dir=tx,drop=0,overtaken=32", device);
	if (rte_vdev_init(front, arguments) != 0) {
		fprintf(stderr, "uroce perf: cannot create port %s\n", front);
		return 1;
	}
	strcpy(device, front);
	return 0;
}

static struct uroce_port *joined_port(const char *name, struct rte_ring *rx, struct rte_ring *tx,
				      struct rte_mempool *pool, bool impaired)
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
	if (impaired && impair_port(device, name) != 0)
		return NULL;
	port = uroce_port_open(&eo, why, sizeof(why));
	if (port == NULL)
		fprintf(stderr, "uroce perf: %s\n", why);
	return port;
}

static int engine_open(struct perf_side *s, const char *name, const char *address, bool impaired,
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
	eo.port = joined_port(name, rx, tx, eo.pool, impaired);
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

static void know_each_other(struct perf_side *near, const struct perf_side *far)
{
	near->far_gid = far->gid;
	near->far_address = (uintptr_t)far->buffer;
	near->far_key = far->mr->rkey;
}

static int qps_open(struct perf_pair *p)
{
	const struct perf_options *o = p->options;

	know_each_other(&p->a, &p->b);
	know_each_other(&p->b, &p->a);
	for (uint32_t i = 0; i < o->qps; i++)
		if (qp_connect(&p->a, i, p->b.qp[i]->qp_num, o->mtu) != 0 ||
		    qp_connect(&p->b, i, p->a.qp[i]->qp_num, o->mtu) != 0 ||
		    receives_post(p, i, o->depth) != 0)
			return 1;
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
	if (p->far || p->options->placement == PLACE_APART)
		return;
	uroce_poll(p->a.engine, 0);
	if (p->options->placement == PLACE_ONE)
		uroce_poll(p->b.engine, 0);
}

void pair_count(const struct perf_pair *p, uint64_t *sent, uint64_t *again)
{
	struct reply_statistics of_a, of_b;

	if (p->far) { /* others attach to such an engine, too */
		*sent = *again = 0;
		return;
	}
	uroce_statistics(p->a.engine, &of_a);
	uroce_statistics(p->b.engine, &of_b);
	*sent = of_a.tx_packets + of_b.tx_packets;
	*again = of_a.retransmitted + of_b.retransmitted;
}

static struct rte_ring *ring_make(const char *pair, const char *way)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%s-%s", pair, way);
	return rte_ring_create(name, PERF_PORT_SLOTS, (int)rte_socket_id(),
			       RING_F_SP_ENQ | RING_F_SC_DEQ);
}

static const char *device_name(const struct perf_pair *p, int end, char *name, size_t size)
{
	snprintf(name, size, "%s%d", p->name, end);
	return name;
}

static int engines_open(struct perf_pair *p)
{
	struct rte_ring *there = ring_make(p->name, "there"), *back = ring_make(p->name, "back");
	char a[16], b[16];

	if (there == NULL || back == NULL) {
		fputs("uroce perf: no memory for the rings; try --memory with more\n", stderr);
		return 1;
	}
	return engine_open(&p->a, device_name(p, 0, a, sizeof(a)), "10.99.0.1", p->impaired, back,
			   there) ||
	       engine_open(&p->b, device_name(p, 1, b, sizeof(b)), "10.99.0.2", p->impaired, there,
			   back);
}

int pair_open(struct perf_pair *p, const char *name, bool impaired, const struct perf_options *o)
{
	char a[16], b[16];

	*p = (struct perf_pair){ .options = o, .name = name, .impaired = impaired };
	p->other_lcore = rte_get_next_lcore(-1, 1, 0);
	if (engines_open(p) != 0)
		return 1;
	if (side_open(&p->a, device_name(p, 0, a, sizeof(a)), o) != 0 ||
	    side_open(&p->b, device_name(p, 1, b, sizeof(b)), o) != 0)
		return 1;
	if (qps_open(p) != 0)
		return 1;
	if (o->placement != PLACE_ONE)
		return rte_eal_remote_launch(other_lcore_main, p, p->other_lcore);
	return 0;
}

int pair_impair(struct perf_pair *p, double lost, double overtaken)
{
	for (int end = 0; end < 2; end++) {
		char name[RTE_ETH_NAME_MAX_LEN];
		struct impair_rules *rules = NULL;
		uint16_t port;

		snprintf(name, sizeof(name), "net_impair_%s%d", p->name, end);
		if (rte_eth_dev_get_port_by_name(name, &port) == 0)
			rules = net_impair_rules(port);
		if (rules == NULL)
			return 1;
		impair_rule_set(&rules->drop, (uint64_t)(lost * ONE));
		impair_rule_set(&rules->reorder, (uint64_t)(overtaken * ONE));
	}
	return 0;
}

void pair_close(struct perf_pair *p)
{
	__atomic_store_n(&p->stop, 1, __ATOMIC_RELEASE);
	if (p->options->placement != PLACE_ONE)
		rte_eal_wait_lcore(p->other_lcore);
	side_close(&p->a, p->options->qps);
	side_close(&p->b, p->options->qps);
	if (p->a.engine != NULL)
		uroce_destroy(p->a.engine);
	if (p->b.engine != NULL)
		uroce_destroy(p->b.engine);
}
