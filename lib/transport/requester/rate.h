/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's limit of octets a second (ibv_modify_qp_rate_limit(3)): a token bucket, kept as the
 * instant at which everything sent so far is paid for. A packet may leave while that instant is not
 * further ahead than the burst. Idle time is not saved up.
 */
#ifndef TRANSPORT_RATE_H
#define TRANSPORT_RATE_H

#include <stdint.h>

#include "base/time.h"

struct rate {
	uint32_t limit; /* kbit/s; 0: none */
	nanotime burst; /* how far ahead of its payment a packet may leave */
	nanotime paid_at; /* when all that was sent is paid for */
};

/* Sets another limit, for packets of at most so many octets. The same limit again changes nothing.
 */
void rate_set(struct rate *r, uint32_t limit, uint32_t packet_octets);
/* When the next packet may leave; at most `now` if it may at once. */
nanotime rate_ready_at(const struct rate *r, nanotime now);
void rate_used(struct rate *r, uint32_t octets, nanotime now);
void rate_unused(struct rate *r, uint32_t octets); /* they did not leave after all */

#endif
