/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/share/patience.h"

#include "base/bits.h"
#include "config/limits.h"
#include "lcore/lcore.h"

nanotime patience_left(const struct patience *p, nanotime now)
{
	nanotime owed = p->paid_at > now ? (p->paid_at - now) / LIMIT_WAIT_SHARE : 0;

	return owed < LEAVE_TIME ? LEAVE_TIME - owed : 0;
}

void patience_spend(struct patience *p, nanotime waited, nanotime now)
{
	p->paid_at = MAX_OF(p->paid_at, now) + LIMIT_WAIT_SHARE * waited;
}
