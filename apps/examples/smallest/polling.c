/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three ways to poll an engine beside a loop of one's own (smallest.c):
 *
 *	polling -l 0,1 --no-huge -m 256 --no-pci -- threads	the engine's own threads
 *	polling ... -- service					a service core
 *	polling ... -- node					a node of rte_graph
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_graph.h>
#include <rte_graph_worker.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_service.h>
#include <uroce.h>

#include "node.h"
#include "self.h"

#define WRITES 20

static unsigned int worker; /* the lcore that polls */
static uint32_t stop; /* atomic */

/* ---- threads ---- */

static int begin_threads(struct uroce_engine *engine)
{
	return uroce_start(engine); /* on options.lcore_ids */
}

static void end_threads(void)
{
	/* uroce_destroy() ends them */
}

/* ---- a service core ---- */

static uint32_t service;

static int begin_service(struct uroce_engine *engine)
{
	int error = uroce_service(engine, 0, &service);

	if (error != 0)
		return error;
	rte_service_lcore_add(worker);
	rte_service_map_lcore_set(service, worker, 1);
	rte_service_runstate_set(service, 1);
	return -rte_service_lcore_start(worker);
}

static void end_service(void)
{
	rte_service_runstate_set(service, 0); /* else its last core does not stop */
	rte_service_lcore_stop(worker);
	rte_eal_wait_lcore(worker);
}

/* ---- a graph ---- */

static int walk(void *graph)
{
	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0)
		rte_graph_walk(graph);
	return 0;
}

static int begin_node(struct uroce_engine *engine)
{
	static const char *patterns[] = { "uroce_poll", "uroce_none" };
	struct rte_graph_param parameters = { .socket_id = SOCKET_ID_ANY,
					      .nb_node_patterns = 2,
					      .node_patterns = patterns };

	node_polls(engine, 0);
	if (rte_graph_create("worker", &parameters) == RTE_GRAPH_ID_INVALID)
		return -1;
	return rte_eal_remote_launch(walk, rte_graph_lookup("worker"), worker);
}

static void end_node(void)
{
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(worker);
	rte_graph_destroy(rte_graph_from_name("worker"));
}

/* ---- */

static const struct way {
	const char *name;
	int (*begin)(struct uroce_engine *engine);
	void (*end)(void);
} ways[] = {
	{ "threads", begin_threads, end_threads },
	{ "service", begin_service, end_service },
	{ "node", begin_node, end_node },
};

/* Another thread polls: this one only uses verbs. */
static int write_many(int n)
{
	static struct self self;
	bool failed = !self_open(&self, "uroce0");

	for (int i = 0; i < n && !failed; i++) {
		snprintf(self.from, sizeof(self.from), "number %d", i);
		failed = !self_write(&self);
		while (!failed && !self_written(&self, &failed))
			;
		failed = failed || strcmp(self.from, self.to) != 0;
	}
	printf("%s: %s\n", failed ? "failed" : "written", self.to);
	self_close(&self);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* NULL: the way does not exist. */
static const struct way *find_way(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(name, ways[i].name) == 0)
			return &ways[i];
	return NULL;
}

static int run(const struct way *way)
{
	struct uroce_options options = {
		.size = sizeof(options), .lcores = 1, .lcore_ids = { worker }, .socket_gid = -1
	};
	char why[256];
	struct uroce_engine *engine = uroce_create(&options, why, sizeof(why));
	int status = EXIT_FAILURE;

	if (engine == NULL) {
		fprintf(stderr, "%s\n", why);
		return EXIT_FAILURE;
	}
	if (uroce_register(engine) != 0 || way->begin(engine) != 0) {
		fprintf(stderr, "no thread polls the engine\n");
	} else {
		status = write_many(WRITES);
		way->end();
	}
	uroce_destroy(engine);
	return status;
}

int main(int argc, char **argv)
{
	int own = rte_eal_init(argc, argv), status = 2;
	const struct way *way;

	if (own < 0)
		return EXIT_FAILURE;
	way = argc - own == 2 ? find_way(argv[own + 1]) : NULL;
	worker = rte_get_next_lcore(-1, 1, 0);
	if (way == NULL)
		fprintf(stderr,
			"polling: '%s': must be threads, service or node, behind EAL's options and --\n",
			argc - own > 1 ? argv[argc - 1] : "");
	else if (worker == RTE_MAX_LCORE)
		fprintf(stderr, "polling: EAL must have a second lcore, as by -l 0,1\n");
	else
		status = run(way);
	rte_eal_cleanup();
	return status;
}
