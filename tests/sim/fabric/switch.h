/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A switch forwards each frame at once to the port that leads to its host. Its ports are lines,
 * with a queue each; their buffers may be parts of a shared one.
 */
#ifndef SIM_SWITCH_H
#define SIM_SWITCH_H

#include "line.h"

struct net_switch {
	struct taker taker;
	struct buffer shared;
	struct line *port; /* `ports` of them */
	uint32_t ports;
	uint32_t *route; /* by host: the number of its port */
	uint32_t hosts;
	uint64_t unknown; /* frames for nobody */
};

/* Ports are initialized by the caller (line_init); routes lead to port 0 at first. */
void switch_init(struct net_switch *s, uint32_t ports, uint32_t hosts, uint64_t shared_octets);
void switch_free(struct net_switch *s);

#endif
