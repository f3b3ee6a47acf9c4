/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt's commands `show ...`. They change nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "counters.h"
#include "drivers/port.h"
#include "lists.h"
#include "locate.h"
#include "stat_cm.h"
#include "control/statistics.h"
#include "engine/port.h"
#include "uroced_commands.h"
#include "uroced_set.h"

/* ---- what the socket shows ---- */

/* As any program asks: the engine's own user sees all. */
static void show_over_socket(int (*print)(int fd, int what, char *why, size_t why_size), int what)
{
	char why[256] = "";
	int fd = engine_connect(console.options->socket);
	int error = fd < 0 ? -fd : print(fd, what, why, sizeof(why));

	if (fd >= 0)
		close(fd);
	if (error != 0)
		console_fail("%s", why[0] != '\0' ? why : strerror(error));
}

static int print_list(int fd, int what, char *why, size_t why_size)
{
	return list_print_since(fd, (enum list_of)what, console_since((enum list_of)what), why,
				why_size);
}

static int print_connections(int fd, int what, char *why, size_t why_size)
{
	return cm_print_since(fd, console_since_connection, why, why_size);
}

static void show_programs(void *parsed, struct cmdline *cl, void *data)
{
	show_over_socket(print_list, LIST_PROGRAMS);
}

static void show_qps(void *parsed, struct cmdline *cl, void *data)
{
	show_over_socket(print_list, LIST_QPS);
}

static void show_memory(void *parsed, struct cmdline *cl, void *data)
{
	struct reply_statistics s;

	show_over_socket(print_list, LIST_MEMORY);
	uroce_statistics(console.engine, &s);
	counters_since(&s, &console.cleared_memory);
	putchar('\n');
	counters_print_memory(stdout, &s);
}

static void show_neighbours(void *parsed, struct cmdline *cl, void *data)
{
	show_over_socket(print_list, LIST_NEIGHBOURS);
}

static void show_paths(void *parsed, struct cmdline *cl, void *data)
{
	show_over_socket(print_list, LIST_PATHS);
}

static void show_connections(void *parsed, struct cmdline *cl, void *data)
{
	show_over_socket(print_connections, 0);
}

/* ---- counters ---- */

static void read_counters(struct reply_statistics *s)
{
	uroce_statistics(console.engine, s);
	counters_since(s, &console.cleared);
}

static void show_stats(void *parsed, struct cmdline *cl, void *data)
{
	struct reply_statistics s;

	read_counters(&s);
	counters_print(stdout, &s, false);
}

static void show_reasons(void *parsed, struct cmdline *cl, void *data)
{
	struct reply_statistics s;

	read_counters(&s);
	for (unsigned int r = 1; r < REASON_COUNT; r++)
		printf("%16" PRIu64 "  %-22s %3u  %s\n", s.by_reason[r],
		       reason_name((enum reason)r), r, reason_sentence((enum reason)r));
}

/* ---- the port ---- */

static void show_xstats(uint16_t id)
{
	int n = rte_eth_xstats_get(id, NULL, 0);
	struct rte_eth_xstat *v;
	struct rte_eth_xstat_name *name;

	if (n <= 0)
		return;
	v = calloc((size_t)n, sizeof(*v));
	name = calloc((size_t)n, sizeof(*name));
	if (v != NULL && name != NULL && rte_eth_xstats_get(id, v, (unsigned int)n) == n &&
	    rte_eth_xstats_get_names(id, name, (unsigned int)n) == n)
		for (int i = 0; i < n; i++)
			if (v[i].value != 0)
				printf("%16" PRIu64 "  %s\n", v[i].value, name[v[i].id].name);
	free(v);
	free(name);
}

static void show_groups(const struct port *p)
{
	const char *all = __atomic_load_n(&p->hears_all, __ATOMIC_RELAXED);

	const char *others = __atomic_load_n(&p->hears_others, __ATOMIC_RELAXED);

	if (others != NULL)
		printf("promiscuous (%s)\n", others);
	if (all != NULL)
		printf("multicast: all (%s)\n\n", all);
	else
		printf("multicast: %u addresses\n\n",
		       __atomic_load_n(&p->groups, __ATOMIC_RELAXED));
}

static void show_port(void *parsed, struct cmdline *cl, void *data)
{
	const struct port *p = port_of_program(console.options->engine.port);
	struct rte_eth_stats s;
	uint16_t id;

	if (p == NULL) {
		puts("no port: this host only");
		return;
	}
	printf("port %s, %02x:%02x:%02x:%02x:%02x:%02x, link %s, Ethernet MTU %u, %u queues\n",
	       p->name, p->mac.octet[0], p->mac.octet[1], p->mac.octet[2], p->mac.octet[3],
	       p->mac.octet[4], p->mac.octet[5],
	       __atomic_load_n(&p->link_up, __ATOMIC_RELAXED) ? "up" : "down", p->mtu, p->queues);
	show_groups(p);
	if (!console_port_id(&id) || rte_eth_stats_get(id, &s) != 0)
		return;
	printf("%16" PRIu64 "  frames received\n%16" PRIu64 "  octets received\n", s.ipackets,
	       s.ibytes);
	printf("%16" PRIu64 "  frames sent\n%16" PRIu64 "  octets sent\n", s.opackets, s.obytes);
	printf("%16" PRIu64 "  frames that found no room\n%16" PRIu64 "  receive errors\n"
	       "%16" PRIu64 "  send errors\n%16" PRIu64 "  times without a buffer\n\n",
	       s.imissed, s.ierrors, s.oerrors, s.rx_nombuf);
	show_xstats(id);
}

static void show_config(void *parsed, struct cmdline *cl, void *data)
{
	console_show_config();
}

#define SHOW(name, what)                                                             \
	WORD(show_##name##_word, 1, #name);                                          \
	static cmdline_parse_inst_t show_##name##_command = {                        \
		.f = show_##name,                                                    \
		.help_str = "show " #name ": " what,                                 \
		.tokens = { (void *)&show_word, (void *)&show_##name##_word, NULL }, \
	};

WORD(show_word, 0, "show");
SHOW(config, "the device and the options that are in force")
SHOW(port, "the port and its counters")
SHOW(stats, "counters since the start or `clear stats`")
SHOW(reasons, "how often something was dropped, refused or failed, by reason")
SHOW(programs, "programs and how many objects they have")
SHOW(qps, "queue pairs and their peers; packets since the start or `clear qps`")
SHOW(memory, "memory regions; what was made and refused since the start or `clear memory`")
SHOW(connections, "ids of rdma_cm; messages since the start or `clear connections`")
SHOW(neighbours, "destination addresses; lookups of them since the start or `clear neighbours`")
SHOW(paths, "the path to each peer: its round trip, and losses since the start or `clear paths`")

cmdline_parse_inst_t *const show_commands[] = {
	&show_config_command,
	&show_port_command,
	&show_stats_command,
	&show_reasons_command,
	&show_programs_command,
	&show_qps_command,
	&show_memory_command,
	&show_connections_command,
	&show_neighbours_command,
	&show_paths_command,
	NULL,
};
