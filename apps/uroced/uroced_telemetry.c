/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Telemetry answers in threads of its own, one for each connection. They take turns here, and the
 * engine can go only between two of them.
 */
#include "uroced_telemetry.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_telemetry.h>

#include "counters.h"
#include "drivers/port.h"
#include "lists.h"
#include "locate.h"
#include "control/statistics.h"
#include "engine/port.h"

static struct {
	pthread_mutex_t lock;
	struct uroce_engine *engine; /* NULL: none */
	const struct uroced_options *options;
} shown = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* DPDK itself answers null, whatever was wrong. */
static int refuse(struct rte_tel_data *d, const char *given, const char *why)
{
	char text[RTE_TEL_MAX_STRING_LEN];

	snprintf(text, sizeof(text), "'%.32s': %s", given != NULL ? given : "", why);
	for (char *c = text; *c != '\0'; c++) /* what JSON and a terminal take as it is */
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = '?';
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "error", text);
	return 0;
}

/* ---- counters ---- */

static void add_counters(struct rte_tel_data *d, const struct counter *c,
			 const struct reply_statistics *s)
{
	for (; c->name != NULL; c++)
		rte_tel_data_add_dict_u64(d, c->name, counter_value(s, c));
}

static int show_stats(const char *params, struct rte_tel_data *d)
{
	struct reply_statistics s;

	uroce_statistics(shown.engine, &s);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "programs", s.clients);
	rte_tel_data_add_dict_u64(d, "queue_pairs", s.qps);
	rte_tel_data_add_dict_u64(d, "completion_queues", s.cqs);
	rte_tel_data_add_dict_u64(d, "memory_regions", s.mrs);
	rte_tel_data_add_dict_u64(d, "objects", counter_objects(&s));
	rte_tel_data_add_dict_u64(d, "connections", s.connections);
	add_counters(d, own_counters, &s);
	add_counters(d, memory_counters, &s);
	return 0;
}

static int show_hw_counters(const char *params, struct rte_tel_data *d)
{
	struct reply_statistics s;

	uroce_statistics(shown.engine, &s);
	rte_tel_data_start_dict(d);
	add_counters(d, linux_counters, &s);
	return 0;
}

static int show_reasons(const char *params, struct rte_tel_data *d)
{
	struct reply_statistics s;

	uroce_statistics(shown.engine, &s);
	rte_tel_data_start_dict(d);
	for (unsigned int r = 1; r < REASON_COUNT; r++)
		rte_tel_data_add_dict_u64(d, reason_name((enum reason)r), s.by_reason[r]);
	return 0;
}

/* ---- the device ---- */

static int show_port(const char *params, struct rte_tel_data *d)
{
	const struct port *p = port_of_program(shown.options->engine.port);
	const char *all, *others;
	char mac[18];

	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "name", p != NULL ? p->name : "");
	if (p == NULL)
		return 0;
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", p->mac.octet[0],
		 p->mac.octet[1], p->mac.octet[2], p->mac.octet[3], p->mac.octet[4],
		 p->mac.octet[5]);
	rte_tel_data_add_dict_string(d, "mac", mac);
	rte_tel_data_add_dict_string(d, "netdev", p->netdev);
	rte_tel_data_add_dict_int(d, "link_up", __atomic_load_n(&p->link_up, __ATOMIC_RELAXED));
	rte_tel_data_add_dict_u64(d, "mtu", p->mtu);
	rte_tel_data_add_dict_u64(d, "queues", p->queues);
	all = __atomic_load_n(&p->hears_all, __ATOMIC_RELAXED);
	rte_tel_data_add_dict_string(d, "multicast_all", all != NULL ? all : "");
	others = __atomic_load_n(&p->hears_others, __ATOMIC_RELAXED);
	rte_tel_data_add_dict_string(d, "promiscuous", others != NULL ? others : "");
	rte_tel_data_add_dict_u64(d, "multicast_groups",
				  __atomic_load_n(&p->groups, __ATOMIC_RELAXED));
	return 0;
}

static int show_info(const char *params, struct rte_tel_data *d)
{
	char text[RTE_TEL_MAX_STRING_LEN];

	uroce_describe(shown.engine, text, sizeof(text));
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "device", text);
	rte_tel_data_add_dict_string(d, "socket", shown.options->socket);
	rte_tel_data_add_dict_u64(d, "lcores", shown.options->engine.lcores);
	return 0;
}

/* ---- lists, as the socket shows them to the engine's user ---- */

static int walk(enum list_of what, void (*row)(void *arg, const void *entry), void *arg)
{
	int fd = engine_connect(shown.options->socket), error;
	char why[256];

	if (fd < 0)
		return fd;
	error = list_walk(fd, what, row, arg, why, sizeof(why));
	close(fd);
	return -error;
}

static void add_field(void *dict, const char *key, const char *text, bool number)
{
	if (number)
		rte_tel_data_add_dict_u64(dict, key, strtoull(text, NULL, 0));
	else
		rte_tel_data_add_dict_string(dict, key, text);
}

/* Entries that do not fit into an answer (256) are left out. */
static void add_qpn(void *array, const void *entry)
{
	rte_tel_data_add_array_u64(array, ((const struct listed_qp *)entry)->qpn);
}

static int show_qps(const char *params, struct rte_tel_data *d)
{
	rte_tel_data_start_array(d, RTE_TEL_U64_VAL);
	return walk(LIST_QPS, add_qpn, d);
}

struct wanted {
	struct rte_tel_data *d;
	unsigned long number;
	bool found;
};

static void add_if_wanted(struct wanted *w, enum list_of what, const void *entry, uint32_t number)
{
	if (number != w->number || w->found)
		return;
	w->found = true;
	rte_tel_data_start_dict(w->d);
	list_fields(what, entry, add_field, w->d);
}

static void add_wanted_qp(void *wanted, const void *entry)
{
	add_if_wanted(wanted, LIST_QPS, entry, ((const struct listed_qp *)entry)->qpn);
}

static void add_wanted_program(void *wanted, const void *entry)
{
	add_if_wanted(wanted, LIST_PROGRAMS, entry, ((const struct listed_program *)entry)->pid);
}

/* The entry with the number that stands behind the command's comma. */
static int show_one(enum list_of what, void (*row)(void *arg, const void *entry),
		    const char *params, struct rte_tel_data *d)
{
	struct wanted w = { .d = d };
	bool given = params != NULL && *params >= '0' && *params <= '9';
	char *end = NULL;
	int error;

	errno = 0;
	w.number = given ? strtoul(params, &end, 0) : 0;
	if (!given || *end != '\0' || errno != 0)
		return refuse(d, params,
			      what == LIST_QPS ? "must be the number of a queue pair (/uroce/qps)"
					       : "must be the pid of a program (/uroce/programs)");
	error = walk(what, row, &w);
	if (error != 0 || w.found)
		return error;
	return refuse(d, params,
		      what == LIST_QPS ? "no queue pair has this number (/uroce/qps)"
				       : "no program has this pid (/uroce/programs)");
}

static int show_qp(const char *params, struct rte_tel_data *d)
{
	return show_one(LIST_QPS, add_wanted_qp, params, d);
}

static void add_pid(void *array, const void *entry)
{
	rte_tel_data_add_array_u64(array, ((const struct listed_program *)entry)->pid);
}

static int show_programs(const char *params, struct rte_tel_data *d)
{
	rte_tel_data_start_array(d, RTE_TEL_U64_VAL);
	return walk(LIST_PROGRAMS, add_pid, d);
}

static int show_program(const char *params, struct rte_tel_data *d)
{
	return show_one(LIST_PROGRAMS, add_wanted_program, params, d);
}

/* ---- all commands ---- */

static const struct {
	const char *name;
	int (*show)(const char *params, struct rte_tel_data *d);
	const char *what;
	bool takes; /* a parameter */
} commands[] = {
	{ "/uroce/hw_counters", show_hw_counters,
	  "Counters by the names that Linux's drivers have. No parameters." },
	{ "/uroce/info", show_info, "The device, its socket and lcores. No parameters." },
	{ "/uroce/port", show_port, "The port. No parameters." },
	{ "/uroce/program", show_program, "One program. Parameter: its pid.", true },
	{ "/uroce/programs", show_programs, "Pids of attached programs. No parameters." },
	{ "/uroce/qp", show_qp, "One queue pair. Parameter: its number.", true },
	{ "/uroce/qps", show_qps, "Numbers of queue pairs. No parameters." },
	{ "/uroce/reasons", show_reasons,
	  "What was dropped, refused or failed, by reason. No parameters." },
	{ "/uroce/stats", show_stats, "Counters of the engine. No parameters." },
};

#define TELEMETRY_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int answer(const char *name, const char *params, struct rte_tel_data *d)
{
	int error = -ENOENT;

	pthread_mutex_lock(&shown.lock);
	for (size_t i = 0; i < TELEMETRY_COMMANDS && shown.engine != NULL; i++)
		if (strcmp(name, commands[i].name) == 0)
			error = commands[i].takes || params == NULL || *params == '\0'
					? commands[i].show(params, d)
					: refuse(d, params, "the command takes no parameter");
	pthread_mutex_unlock(&shown.lock);
	return error;
}

void telemetry_open(struct uroce_engine *e, const struct uroced_options *o)
{
	pthread_mutex_lock(&shown.lock);
	shown.engine = e;
	shown.options = o;
	pthread_mutex_unlock(&shown.lock);
	for (size_t i = 0; i < TELEMETRY_COMMANDS; i++)
		rte_telemetry_register_cmd(commands[i].name, answer, commands[i].what);
}

void telemetry_close(void)
{
	pthread_mutex_lock(&shown.lock);
	shown.engine = NULL;
	pthread_mutex_unlock(&shown.lock);
}
