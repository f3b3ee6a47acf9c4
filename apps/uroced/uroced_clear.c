/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The prompt's commands `clear ...`, like dpdk-testpmd's: `show` counts from then on. The prompt
 * remembers the counts at that time and subtracts them. The engine's counters go on, because
 * programs that collect them expect them to grow. Only the counters of the port's driver start
 * again (`clear port`).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "base/bits.h"
#include "control/statistics.h"
#include "lists.h"
#include "locate.h"
#include "stat_cm.h"
#include "uroced_commands.h"
#include "uroced_set.h"

/* ---- the counts of one object ---- */

/* Another object may have got the name since: it has counted less. */
static void take_off(uint64_t *now, const uint64_t *before, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (now[i] < before[i])
			return;
	for (uint32_t i = 0; i < n; i++)
		now[i] -= before[i];
}

static int order_of(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int qps_order(const void *a_, const void *b_)
{
	const struct listed_qp *a = a_, *b = b_;
	int order = order_of(a->qpn, b->qpn);

	return order != 0 ? order : order_of(a->pid, b->pid);
}

static void qps_since(void *now_, const void *before_)
{
	const struct listed_qp *b = before_;
	struct listed_qp *n = now_;
	uint64_t now[] = { n->sent, n->received, n->again };
	const uint64_t before[] = { b->sent, b->received, b->again };

	take_off(now, before, ARRAY_SIZE(now));
	n->sent = now[0];
	n->received = now[1];
	n->again = now[2];
}

static int paths_order(const void *a_, const void *b_)
{
	const struct listed_path *a = a_, *b = b_;
	int order = order_of(a->lcore, b->lcore);

	return order != 0 ? order : order_of(a->serial, b->serial);
}

static void paths_since(void *now, const void *before)
{
	static_assert(offsetof(struct listed_path, waits) + sizeof(uint64_t) ==
			      sizeof(struct listed_path),
		      "counters are last");
	take_off(&((struct listed_path *)now)->samples,
		 &((const struct listed_path *)before)->samples,
		 (sizeof(struct listed_path) - offsetof(struct listed_path, samples)) /
			 sizeof(uint64_t));
}

static int neighbours_order(const void *a, const void *b)
{
	return order_of(((const struct listed_neighbour *)a)->serial,
			((const struct listed_neighbour *)b)->serial);
}

static void neighbours_since(void *now_, const void *before_)
{
	const struct listed_neighbour *b = before_;
	struct listed_neighbour *n = now_;
	uint64_t now[] = { n->looks, n->changes };
	const uint64_t before[] = { b->looks, b->changes };

	take_off(now, before, ARRAY_SIZE(now));
	n->looks = now[0];
	n->changes = now[1];
}

static int address_order(const struct cm_address *a, const struct cm_address *b)
{
	int order = memcmp(&a->ip, &b->ip, sizeof(a->ip));

	return order != 0 ? order : order_of(a->port, b->port);
}

static int connections_order(const void *a_, const void *b_)
{
	const struct cm_listed *a = a_, *b = b_;
	int order = address_order(&a->source, &b->source);

	if (order == 0)
		order = address_order(&a->destination, &b->destination);
	if (order == 0)
		order = order_of(a->pid, b->pid);
	return order != 0 ? order : order_of(a->port_space, b->port_space);
}

static void connections_since(void *now_, const void *before_)
{
	const struct cm_listed *b = before_;
	struct cm_listed *n = now_;
	uint64_t now[] = { n->sent, n->received, n->timeouts };
	const uint64_t before[] = { b->sent, b->received, b->timeouts };

	take_off(now, before, ARRAY_SIZE(now));
	n->sent = (uint32_t)now[0];
	n->received = (uint32_t)now[1];
	n->timeouts = (uint32_t)now[2];
}

/* ---- the counts when they were cleared ---- */

struct cleared {
	size_t size; /* of an entry */
	int (*order)(const void *a, const void *b); /* 0: the same object */
	void (*since)(void *now, const void *before);
	uint8_t *entry;
	uint32_t entries, room;
};

static struct cleared qps = { sizeof(struct listed_qp), qps_order, qps_since };
static struct cleared paths = { sizeof(struct listed_path), paths_order, paths_since };
static struct cleared neighbours = { sizeof(struct listed_neighbour), neighbours_order,
				     neighbours_since };
static struct cleared connections = { sizeof(struct cm_listed), connections_order,
				      connections_since };

static void forget(struct cleared *c)
{
	free(c->entry);
	c->entry = NULL;
	c->entries = c->room = 0;
}

/* Without memory an entry is left out, and goes on to count from its start. */
static void remember(void *cleared, const void *entry)
{
	struct cleared *c = cleared;
	uint32_t room = c->room == 0 ? 64 : 2 * c->room;
	uint8_t *more;

	if (c->entries == c->room) {
		more = realloc(c->entry, room * c->size);
		if (more == NULL)
			return;
		c->entry = more;
		c->room = room;
	}
	memcpy(c->entry + c->entries++ * c->size, entry, c->size);
}

static void remember_id(void *cleared, struct cm_listed *id)
{
	remember(cleared, id);
}

static void since(const struct cleared *c, void *entry)
{
	const void *before =
		c->entries == 0 ? NULL : bsearch(entry, c->entry, c->entries, c->size, c->order);

	if (before != NULL)
		c->since(entry, before);
}

static void since_qps(void *entry)
{
	since(&qps, entry);
}

static void since_paths(void *entry)
{
	since(&paths, entry);
}

static void since_neighbours(void *entry)
{
	since(&neighbours, entry);
}

void (*console_since(enum list_of what))(void *entry)
{
	switch (what) {
	case LIST_QPS:
		return since_qps;
	case LIST_PATHS:
		return since_paths;
	case LIST_NEIGHBOURS:
		return since_neighbours;
	default:
		return NULL;
	}
}

void console_since_connection(struct cm_listed *id)
{
	since(&connections, id);
}

void console_clear_close(void)
{
	forget(&qps);
	forget(&paths);
	forget(&neighbours);
	forget(&connections);
}

/* ---- the commands ---- */

static void clear_over_socket(struct cleared *c, bool ids, enum list_of what, const char *name)
{
	char why[256] = "";
	int fd = engine_connect(console.options->socket), error = -fd;

	if (fd >= 0) {
		forget(c);
		error = ids ? cm_walk(fd, remember_id, c, why, sizeof(why))
			    : list_walk(fd, what, remember, c, why, sizeof(why));
		close(fd);
	}
	if (c->entries > 0)
		qsort(c->entry, c->entries, c->size, c->order);
	if (error != 0)
		console_fail("clear %s: %s", name, why[0] != '\0' ? why : strerror(error));
}

static void clear_qps(void *parsed, struct cmdline *cl, void *data)
{
	clear_over_socket(&qps, false, LIST_QPS, "qps");
}

static void clear_paths(void *parsed, struct cmdline *cl, void *data)
{
	clear_over_socket(&paths, false, LIST_PATHS, "paths");
}

static void clear_neighbours(void *parsed, struct cmdline *cl, void *data)
{
	clear_over_socket(&neighbours, false, LIST_NEIGHBOURS, "neighbours");
}

static void clear_connections(void *parsed, struct cmdline *cl, void *data)
{
	clear_over_socket(&connections, true, LIST_QPS, "connections");
}

static void clear_memory(void *parsed, struct cmdline *cl, void *data)
{
	uroce_statistics(console.engine, &console.cleared_memory);
}

static void clear_stats(void *parsed, struct cmdline *cl, void *data)
{
	uroce_statistics(console.engine, &console.cleared);
}

static void clear_port(void *parsed, struct cmdline *cl, void *data)
{
	uint16_t id;

	if (!console_port_id(&id))
		console_fail("clear port: there is no port");
	else if (rte_eth_stats_reset(id) != 0)
		console_fail("clear port: the port's driver does not support it");
	else
		rte_eth_xstats_reset(id);
}

#define CLEAR(name, what)                                                              \
	WORD(clear_##name##_word, 1, #name);                                           \
	static cmdline_parse_inst_t clear_##name##_command = {                         \
		.f = clear_##name,                                                     \
		.help_str = "clear " #name ": " what,                                  \
		.tokens = { (void *)&clear_word, (void *)&clear_##name##_word, NULL }, \
	};

#define OTHERS "; other readers see no change"

WORD(clear_word, 0, "clear");
CLEAR(stats, "show stats counts from now on" OTHERS)
CLEAR(port, "reset the counters of the port's driver")
CLEAR(qps, "show qps counts packets from now on" OTHERS)
CLEAR(paths, "show paths counts from now on; round trips stay" OTHERS)
CLEAR(memory, "show memory counts from now on what was made and refused" OTHERS)
CLEAR(connections, "show connections counts messages from now on" OTHERS)
CLEAR(neighbours, "show neighbours counts lookups and changes from now on" OTHERS)

cmdline_parse_inst_t *const clear_commands[] = {
	&clear_stats_command,	   &clear_port_command,
	&clear_qps_command,	   &clear_paths_command,
	&clear_memory_command,	   &clear_connections_command,
	&clear_neighbours_command, NULL,
};
