/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts, switches and the cables between them.
 *
 *	star (incast, reorder, many)	bottleneck
 *
 *	 0 --.                          0 --.                .-- n
 *	 1 --- switch                   1 --- switch -- switch --- n+1
 *	 2 --'                          2 --'     trunk      '-- n+2
 */
#ifndef SIM_TOPOLOGY_H
#define SIM_TOPOLOGY_H

#include "beside.h"
#include "connects.h"
#include "fabric.h"
#include "host.h"
#include "scenario.h"
#include "switch.h"
#include "transfer.h"

#define SWITCHES 2u

/* The sending and the receiving host. */
struct plan {
	uint32_t from, to;
};

struct net {
	struct fabric fabric;
	struct host *host;
	uint32_t hosts;
	struct net_switch node[SWITCHES];
	uint32_t switches;
	struct line *bottleneck; /* where the octets of all messages meet */
	struct transfer *transfer;
	uint32_t transfers;
	struct beside beside; /* if the scenario has one, */
	struct connects connects; /* or this */
	struct measure measure;
};

/*
 * Makes everything, and connects the queue pairs of `transfers` plans. One more plan is for the
 * additional traffic, if there is any.
 */
void topology_make(struct net *n, const struct scenario_config *c, const struct plan *plan,
		   uint32_t transfers);
void topology_free(struct net *n);

#endif
