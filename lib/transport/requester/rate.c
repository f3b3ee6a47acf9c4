/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "base/bits.h"
#include "transport/requester/rate.h"

#define BURST_PACKETS 2u
#define BURST_TIME    (32 * TIME_US) /* a poll or a tick of the wheel that comes late costs no rate */

static nanotime time_of(uint64_t octets, uint32_t kilobits)
{
	assert(kilobits > 0 && octets <= UINT32_MAX * (uint64_t)BURST_PACKETS && "no overflow");
	return (octets * 8 * 1000000 + kilobits - 1) / kilobits; /* never faster than asked */
}

void rate_set(struct rate *r, uint32_t limit, uint32_t packet_octets)
{
	nanotime burst = 0;

	if (limit != 0)
		burst = MAX_OF(time_of(BURST_PACKETS * (uint64_t)packet_octets, limit), BURST_TIME);
	if (r->limit == limit && r->burst == burst)
		return;
	*r = (struct rate){ .limit = limit, .burst = burst };
}

nanotime rate_ready_at(const struct rate *r, nanotime now)
{
	assert(now != TIME_NEVER);
	return r->limit == 0 || r->paid_at <= r->burst ? now : r->paid_at - r->burst;
}

void rate_used(struct rate *r, uint32_t octets, nanotime now)
{
	assert(rate_ready_at(r, now) <= now && "it might leave");
	if (r->limit != 0)
		r->paid_at = MAX_OF(r->paid_at, now) + time_of(octets, r->limit);
}

void rate_unused(struct rate *r, uint32_t octets)
{
	if (r->limit != 0)
		r->paid_at -= MIN_OF(r->paid_at, time_of(octets, r->limit));
}
