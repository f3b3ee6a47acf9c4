/* SPDX-License-Identifier: BSD-3-Clause */
/* A source node of rte_graph that polls an engine: "uroce_poll". */
#ifndef NODE_H
#define NODE_H

#include <stdint.h>
#include <uroce.h>

/* Sets the engine that nodes of graphs created from now on poll. */
void node_polls(struct uroce_engine *engine, uint32_t lcore);

#endif
