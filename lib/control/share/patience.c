/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/share/patience.h"

#include "base/bits.h"
#include "config/limits.h"
#include "lcore/lcore.h"

nanotime patience_left(const struct patience *p, nanotime now)
{
	const nanotime burst = LIMIT_WAIT_BURST_MS * TIME_MS;
	nanotime owed = p->paid_at > now ? (p->paid_at - now) / LIMIT_WAIT_SHARE : 0;

	return owed < burst ? MIN_OF(LEAVE_TIME, burst - owed) : 0;
}

void patience_spend(struct patience *p, nanotime waited, nanotime now)
{
	p->paid_at = MAX_OF(p->paid_at, now) + LIMIT_WAIT_SHARE * waited;
}
