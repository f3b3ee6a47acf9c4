/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long commands of one user may look, under the control lock, whether what a program has posted
 * has left. No thread waits between two looks. A look is a round trip to an lcore. Many programs of
 * a user can ask for looks again and again, while everybody's commands wait behind them. So a
 * user's looks take at most a tenth of the time, beyond LIMIT_WAIT_BURST_MS that may come at once.
 */
#ifndef CONTROL_PATIENCE_H
#define CONTROL_PATIENCE_H

#include "base/time.h"

struct patience {
	nanotime paid_at; /* when the waits so far are made up for; 0: there were none */
};

/* How long it may be looked at again, from now on: 0 .. LEAVE_TIME. */
nanotime patience_left(const struct patience *p, nanotime now);
/* A look has lasted this long, until now. */
void patience_spend(struct patience *p, nanotime waited, nanotime now);

#endif
