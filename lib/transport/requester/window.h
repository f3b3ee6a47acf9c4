/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many packets a requester keeps unacknowledged, so that a burst does not overrun a receive
 * ring on the way. The window grows by a packet for 16 acknowledged ones. A ring that overflows
 * loses many packets of a window: losses close to each other, and silence, halve it. A loss that
 * stands alone, as on a bad wire, costs an eighth.
 *
 * The floor is not lower because a small window stalls: with fewer packets behind it than the peer
 * acknowledges at once, only the timer notices a lost packet or acknowledgement, and 1 % of loss
 * turned 300 MB/s into 15 (docs/decisions/0004-window.md).
 */
#ifndef TRANSPORT_WINDOW_H
#define TRANSPORT_WINDOW_H

#include <stdint.h>

struct window {
	uint32_t packets; /* LIMIT_WINDOW_FLOOR .. LIMIT_WINDOW */
	uint32_t acknowledged; /* packets since the window last grew */
	uint32_t since_loss; /* packets acknowledged since the last loss, saturating */
};

void window_init(struct window *w);
void window_acknowledged(struct window *w, uint32_t packets);
void window_lost(struct window *w); /* the peer reported a gap, or the network asked to slow down */
void window_silent(struct window *w); /* a timeout */

#endif
