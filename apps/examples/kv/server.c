/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server of a key-value store (kv.h), with the engine inside. It serves programs of this host by
 * a socket, and other hosts if it has a port:
 *
 *	kv-server --no-huge -m 256 --no-pci -- --socket /tmp/kv.sock
 *	kv-server --no-huge -m 256 --no-pci -- --netdev eth0
 *
 * The engine polls on EAL's first lcore. The main thread accepts clients, and each client has a thread
 * for its changes. Nothing here runs when a client reads.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <uroce.h>

#include "session.h"

#define BUFFERS	    8191
#define BUFFER_ROOM (RTE_PKTMBUF_HEADROOM + 9216)

static struct uroce_engine *open_engine(const char *socket, const char *netdev)
{
	struct uroce_options o = { .size = sizeof(o),
				   .lcores = 1,
				   .lcore_ids = { rte_get_main_lcore() },
				   .adaptive = true,
				   .socket_path = socket,
				   .socket_gid = -1 };
	struct uroce_port_options p = { .size = sizeof(p), .netdev = netdev };
	struct uroce_engine *engine = NULL;
	char text[256] = "no memory for packet buffers: give EAL more with -m";

	if (netdev != NULL) {
		o.pool = p.pool = rte_pktmbuf_pool_create("frames", BUFFERS, 256, 0, BUFFER_ROOM,
							  SOCKET_ID_ANY);
		if (p.pool != NULL)
			o.port = uroce_port_open(&p, text, sizeof(text));
	}
	if (netdev == NULL || o.port != NULL)
		engine = uroce_create(&o, text, sizeof(text));
	if (engine == NULL) {
		fprintf(stderr, "%s\n", text);
		uroce_port_close(o.port);
		return NULL;
	}
	uroce_describe(engine, text, sizeof(text));
	printf("%s\n", text);
	return engine;
}

int main(int argc, char **argv)
{
	static const struct option names[] = { { "socket", 1, NULL, 's' },
					       { "netdev", 1, NULL, 'n' },
					       { 0 } };
	const char *socket = NULL, *netdev = NULL;
	int signals = sessions_signals();
	int own = rte_eal_init(argc, argv), o, status = EXIT_FAILURE;
	struct uroce_engine *engine;

	if (own < 0)
		return EXIT_FAILURE;
	argc -= own;
	argv += own;
	opterr = 0;
	while ((o = getopt_long(argc, argv, "", names, NULL)) == 's' || o == 'n') {
		if (o == 's')
			socket = optarg;
		else
			netdev = optarg;
	}
	if (o != -1 || optind < argc) {
		fprintf(stderr, "kv-server: '%s': must be --socket PATH or --netdev IFACE\n",
			argv[o != -1 ? optind - 1 : optind]);
		return 2;
	}
	engine = open_engine(socket, netdev);
	if (engine == NULL)
		return EXIT_FAILURE;
	if (uroce_register(engine) == 0 && uroce_start(engine) == 0)
		status = sessions_serve(signals);
	uroce_destroy(engine);
	rte_eal_cleanup();
	return status;
}
