/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwards IPv4 between DPDK ports as l3fwd does, and tells a collector about the flows by RDMA. It
 * keeps its ports; the engine gets its frames by hand.
 *
 *	forward -l 0,1 --vdev ... -- --address 10.2.0.1/24 --engine-port 1 \
 *		--route 10.1.0.0/24,0,02:..:01 --route 10.2.0.0/24,1,02:..:02 --collector 10.2.0.2
 *
 * Lcore 1 forwards, polls the engine and carries its frames. The main thread connects to the
 * collector and writes there five times a second, by verbs on the same engine. SIGTERM ends it.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_udp.h>
#include <uroce.h>

#include "export.h"
#include "flows.h"
#include "ports.h"
#include "route.h"

#define BURST	 32
#define PAUSE_US 200000
#define SERVICE	 "7471"

static struct forwarder {
	struct uroce_engine *engine;
	struct uroce_port *handed;
	uint16_t engine_port; /* whose frames the engine shares */
	struct flow_table *flows;
	const char *collector;
	struct uroce_address address;
} f;
static uint32_t stop; /* atomic */

/* ---- the forwarding lcore ---- */

/* Ports are in the same place for TCP and UDP. */
static void count(const struct rte_mbuf *m, const struct rte_ipv4_hdr *ip)
{
	struct flow_key key = { .source = ip->src_addr,
				.destination = ip->dst_addr,
				.protocol = ip->next_proto_id };
	const struct rte_udp_hdr *ports = RTE_PTR_ADD(ip, rte_ipv4_hdr_len(ip));

	if ((ip->next_proto_id == IPPROTO_TCP || ip->next_proto_id == IPPROTO_UDP) &&
	    RTE_PTR_DIFF(ports + 1, rte_pktmbuf_mtod(m, void *)) <= m->data_len) {
		key.source_port = ports->src_port;
		key.destination_port = ports->dst_port;
	}
	flows_count(f.flows, &key, m->pkt_len);
}

/* The port to send it to, or -1: it is not for us. Decrements the time to live. */
static int route_frame(struct rte_mbuf *m)
{
	struct rte_ether_hdr *ether = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ether + 1);
	const struct route *r;

	if (m->data_len < sizeof(*ether) + sizeof(*ip) ||
	    ether->ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) || ip->time_to_live <= 1)
		return -1;
	r = route_find(rte_be_to_cpu_32(ip->dst_addr));
	if (r == NULL)
		return -1;
	count(m, ip);
	ip->time_to_live--;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	ether->dst_addr = r->next_hop;
	ether->src_addr = *port_mac(r->port);
	return r->port;
}

static void forward_from(uint16_t port)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(port, 0, m, BURST);

	for (uint16_t i = 0; i < n; i++) {
		bool engines = port == f.engine_port && uroce_wants(f.engine, m[i]);
		int to = engines ? -1 : route_frame(m[i]);

		if (engines && uroce_hand_in(f.handed, 0, &m[i], 1) == 1)
			continue;
		if (to < 0 || rte_eth_tx_burst((uint16_t)to, 0, &m[i], 1) != 1)
			rte_pktmbuf_free(m[i]);
	}
}

/* Sends the engine's frames. Those that the port refuses are lost, and RoCE sends them again. */
static void carry_out(void)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = uroce_take_out(f.handed, 0, m, BURST);
	uint16_t sent = n > 0 ? rte_eth_tx_burst(f.engine_port, 0, m, n) : 0;

	for (uint16_t i = sent; i < n; i++)
		rte_pktmbuf_free(m[i]);
}

static int forward(void *none)
{
	uint16_t port;

	(void)none;
	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0) {
		RTE_ETH_FOREACH_DEV(port)
		forward_from(port);
		uroce_poll(f.engine, 0);
		carry_out();
	}
	return 0;
}

/* ---- the main thread ---- */

/* False: the collector was not there, or has gone. */
static bool tell_collector(const sigset_t *signals)
{
	const struct timespec none = { 0 };
	struct export *x = export_open(f.collector, SERVICE, f.flows);
	bool told = true;

	if (x == NULL)
		return false;
	printf("connected to %s\n", f.collector);
	fflush(stdout);
	while (told && sigtimedwait(signals, NULL, &none) < 0) {
		told = export_now(x);
		usleep(PAUSE_US);
	}
	told = told && export_now(x); /* the rest */
	if (!told)
		fprintf(stderr, "forward: cannot write to the collector\n");
	export_close(x);
	return told;
}

static bool open_engine(struct rte_mempool *pool)
{
	struct uroce_handed_options h = { .size = sizeof(h), .mtu = PORTS_MTU };
	struct uroce_options o = { .size = sizeof(o),
				   .lcores = 1,
				   .addresses = 1,
				   .address = { f.address },
				   .socket_gid = -1,
				   .pool = pool };
	char why[256];

	memcpy(h.mac, port_mac(f.engine_port), sizeof(h.mac));
	f.handed = uroce_port_handed(&h, why, sizeof(why));
	if (f.handed != NULL) {
		o.port = f.handed;
		f.engine = uroce_create(&o, why, sizeof(why));
	}
	if (f.engine == NULL) {
		fprintf(stderr, "%s\n", why);
		return false;
	}
	return uroce_register(f.engine) == 0;
}

static bool read_address(const char *text, struct uroce_address *a)
{
	unsigned int v[4], prefix;
	char rest;

	if (sscanf(text, "%u.%u.%u.%u/%u%c", &v[0], &v[1], &v[2], &v[3], &prefix, &rest) != 5 ||
	    (v[0] | v[1] | v[2] | v[3]) > 255 || prefix > 32)
		return false;
	a->octet[10] = a->octet[11] = 0xff;
	for (int i = 0; i < 4; i++)
		a->octet[12 + i] = (uint8_t)v[i];
	a->prefix = (uint8_t)prefix;
	return true;
}

static bool read_port(const char *text, uint16_t *port)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*port = (uint16_t)n;
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && n < RTE_MAX_ETHPORTS &&
	       rte_eth_dev_is_valid_port(*port);
}

/* Prints what is wrong in one line. */
static bool refuse(const char *what, const char *given, const char *must)
{
	fprintf(stderr, "forward: %s%s%s: must be %s\n", what, given != NULL ? " " : "",
		given != NULL ? given : "", must);
	return false;
}

static bool read_option(int o, const char *word)
{
	switch (o) {
	case 'a':
		return (read_address(optarg, &f.address) && f.address.prefix != 0) ||
		       refuse("--address", optarg, "A.B.C.D/LEN, LEN in 1 .. 32");
	case 'e':
		return read_port(optarg, &f.engine_port) ||
		       refuse("--engine-port", optarg, "the number of a port of EAL");
	case 'r':
		return route_add(optarg) ||
		       refuse("--route", optarg,
			      "NET/LEN,PORT,MAC, and the table must have room for it");
	case 'c':
		f.collector = optarg;
		return true;
	default:
		return refuse(word, NULL,
			      "--address ADDR/LEN, --engine-port N, --collector HOST or "
			      "--route NET/LEN,PORT,MAC");
	}
}

static bool read_options(int argc, char **argv)
{
	static const struct option names[] = { { "address", 1, NULL, 'a' },
					       { "engine-port", 1, NULL, 'e' },
					       { "route", 1, NULL, 'r' },
					       { "collector", 1, NULL, 'c' },
					       { 0 } };
	int o;

	opterr = 0;
	f.engine_port = RTE_MAX_ETHPORTS;
	while ((o = getopt_long(argc, argv, "", names, NULL)) != -1)
		if (!read_option(o, argv[optind - 1]))
			return false;
	if (optind < argc)
		return read_option('?', argv[optind]);
	if (f.collector == NULL)
		return refuse("--collector is missing", NULL, "a host");
	if (f.address.prefix == 0)
		return refuse("--address is missing", NULL, "A.B.C.D/LEN");
	if (f.engine_port == RTE_MAX_ETHPORTS)
		return refuse("--engine-port is missing", NULL, "the number of a port of EAL");
	return true;
}

static int run(const sigset_t *signals)
{
	unsigned int worker = rte_get_next_lcore(-1, 1, 0);
	struct rte_mempool *pool = ports_open();
	bool told;

	f.flows = flows_create();
	if (pool == NULL || f.flows == NULL || worker >= RTE_MAX_LCORE || !open_engine(pool))
		return EXIT_FAILURE;
	rte_eal_remote_launch(forward, NULL, worker);
	told = tell_collector(signals);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(worker);
	uroce_destroy(f.engine);
	return told ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	sigset_t signals;
	int own, status;

	/* before there are threads, which would take them */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	own = rte_eal_init(argc, argv);
	if (own < 0)
		return EXIT_FAILURE;
	if (!read_options(argc - own, argv + own))
		return 2;
	status = run(&signals);
	rte_eal_cleanup();
	return status;
}
