/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "config/limits.h"
#include "transport/pace.h"

#define GROW_EVERY  16u /* packets acknowledged for one packet more */
#define LOSS_APART  64u /* packets acknowledged between losses that nobody's burst caused */
#define LOSS_SHRINK 8u /* such a loss costs one part in so many */

#define BURST_PACKETS 2u
#define BURST_TIME    (32 * TIME_US) /* a poll or a tick of the wheel that comes late costs no rate */

void pace_init(struct pace *p)
{
	p->window = LIMIT_WINDOW_START;
	p->acknowledged = 0;
	p->since_loss = LOSS_APART;
}

void pace_acknowledged(struct pace *p, uint32_t packets)
{
	p->since_loss = MIN_OF(p->since_loss + packets, LOSS_APART);
	p->acknowledged += packets;
	if (p->acknowledged < GROW_EVERY)
		return;
	p->window = MIN_OF(p->window + p->acknowledged / GROW_EVERY, LIMIT_WINDOW);
	p->acknowledged %= GROW_EVERY;
}

static void shrink(struct pace *p, uint32_t by)
{
	p->acknowledged = 0;
	p->since_loss = 0;
	p->window = MAX_OF(p->window - by, LIMIT_WINDOW_FLOOR);
}

void pace_lost(struct pace *p)
{
	bool apart = p->since_loss >= LOSS_APART;

	shrink(p, apart ? p->window / LOSS_SHRINK : p->window / 2);
}

void pace_silent(struct pace *p)
{
	shrink(p, p->window / 2);
}

static nanotime time_of(uint64_t octets, uint32_t kilobits)
{
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
	return r->limit == 0 || r->paid_at <= r->burst ? now : r->paid_at - r->burst;
}

void rate_used(struct rate *r, uint32_t octets, nanotime now)
{
	if (r->limit != 0)
		r->paid_at = MAX_OF(r->paid_at, now) + time_of(octets, r->limit);
}

void rate_unused(struct rate *r, uint32_t octets)
{
	if (r->limit != 0)
		r->paid_at -= MIN_OF(r->paid_at, time_of(octets, r->limit));
}
