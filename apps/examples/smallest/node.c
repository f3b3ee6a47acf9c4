/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"

#include <rte_common.h>
#include <rte_graph.h>
#include <rte_graph_worker.h>

/* The private data of a graph's node. */
struct polled {
	struct uroce_engine *engine;
	uint32_t lcore;
};

static struct polled next;

void node_polls(struct uroce_engine *engine, uint32_t lcore)
{
	next = (struct polled){ engine, lcore };
}

static int node_init(const struct rte_graph *graph, struct rte_node *node)
{
	struct polled *p = (struct polled *)node->ctx;

	RTE_BUILD_BUG_ON(sizeof(*p) > RTE_NODE_CTX_SZ);
	(void)graph;
	*p = next;
	return next.engine != NULL ? 0 : -1;
}

/* A source node has no objects: the engine takes its frames from its port itself. */
static uint16_t node_process(struct rte_graph *graph, struct rte_node *node, void **objects,
			     uint16_t n)
{
	const struct polled *p = (const struct polled *)node->ctx;
	int work = uroce_poll(p->engine, p->lcore);

	(void)graph;
	(void)objects;
	(void)n;
	return work > 0 ? (uint16_t)RTE_MIN(work, (int)UINT16_MAX) : 0;
}

/* rte_graph wants an edge from every source; nothing goes there. */
static uint16_t none_process(struct rte_graph *graph, struct rte_node *node, void **objects,
			     uint16_t n)
{
	(void)graph;
	(void)node;
	(void)objects;
	return n;
}

static struct rte_node_register none_node = { .name = "uroce_none", .process = none_process };

static struct rte_node_register uroce_node = {
	.name = "uroce_poll",
	.flags = RTE_NODE_SOURCE_F,
	.process = node_process,
	.init = node_init,
	.nb_edges = 1,
	.next_nodes = { "uroce_none" },
};

RTE_NODE_REGISTER(none_node);
RTE_NODE_REGISTER(uroce_node);
