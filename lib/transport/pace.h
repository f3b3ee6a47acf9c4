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
 *
 * And how many octets leave in a second, where the program limits that (ibv_modify_qp_rate_limit(3)):
 * a bucket of tokens, kept as the instant at which everything sent so far is paid for. A packet may
 * leave as long as that is not further ahead than the burst; idle time is not saved up.
 */
#ifndef TRANSPORT_PACE_H
#define TRANSPORT_PACE_H

#include <stdint.h>

#include "base/time.h"

struct pace {
	uint32_t window; /* packets, LIMIT_WINDOW_FLOOR .. LIMIT_WINDOW */
	uint32_t acknowledged; /* packets since the window last grew */
	uint32_t since_loss; /* packets acknowledged since the last loss, saturating */
};

void pace_init(struct pace *p);
void pace_acknowledged(struct pace *p, uint32_t packets);
void pace_lost(struct pace *p); /* the peer reported a gap, or the network asked to slow down */
void pace_silent(struct pace *p); /* a timeout */

struct rate {
	uint32_t limit; /* kbit/s; 0: none */
	nanotime burst; /* how far ahead of its payment a packet may leave */
	nanotime paid_at; /* when all that was sent is paid for */
};

/* Another limit, with packets of at most so many octets. The same limit again changes nothing. */
void rate_set(struct rate *r, uint32_t limit, uint32_t packet_octets);
/* When the next packet may leave; at most `now` if it may at once. */
nanotime rate_ready_at(const struct rate *r, nanotime now);
void rate_used(struct rate *r, uint32_t octets, nanotime now);
void rate_unused(struct rate *r, uint32_t octets); /* they did not leave after all */

#endif
