/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many packets a requester keeps unacknowledged, so that a burst does not overrun a receive
 * ring on the way. It grows by a packet for 16 acknowledged ones. A ring that overflows loses many
 * packets of a window: losses close to each other, and silence, halve it. A loss that stands
 * alone, as on a bad wire, costs an eighth.
 *
 * The floor is no lower because a small window stalls: with fewer packets behind it than the peer
 * acknowledges at once, a lost packet or acknowledgement is noticed by the timer only, and 1 % of
 * loss turned 300 MB/s into 15 (docs/decisions/0004-window.md).
 */
#ifndef TRANSPORT_PACE_H
#define TRANSPORT_PACE_H

#include <stdint.h>

struct pace {
	uint32_t window; /* packets, LIMIT_WINDOW_FLOOR .. LIMIT_WINDOW */
	uint32_t acknowledged; /* packets since the window last grew */
	uint32_t since_loss; /* packets acknowledged since the last loss, saturating */
};

void pace_init(struct pace *p);
void pace_acknowledged(struct pace *p, uint32_t packets);
void pace_lost(struct pace *p); /* the peer reported a gap, or the network asked to slow down */
void pace_silent(struct pace *p); /* a timeout */

#endif
