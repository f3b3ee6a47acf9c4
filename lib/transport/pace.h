/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many packets a requester keeps unacknowledged, so that a burst does not overrun a receive
 * ring on the way: one packet more per window acknowledged, half after a loss that the peer
 * reported, the floor after a timeout (nothing is known of the path then).
 */
#ifndef TRANSPORT_PACE_H
#define TRANSPORT_PACE_H

#include <stdint.h>

struct pace {
	uint32_t window; /* packets, LIMIT_WINDOW_FLOOR .. LIMIT_WINDOW */
	uint32_t acknowledged; /* packets since the window last grew */
};

void pace_init(struct pace *p);
void pace_acknowledged(struct pace *p, uint32_t packets);
void pace_lost(struct pace *p); /* the peer reported a gap, or the network asked to slow down */
void pace_silent(struct pace *p); /* a timeout */

#endif
