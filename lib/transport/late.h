/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How late a caller hands packets to the network and takes them from it: the recent time between
 * two of its polls, or how long its port took nothing. A path adds this time to what round trips
 * may take, because no other sender causes it. A uroce peer announces its own in each packet, in
 * steps (docs/wire-extensions.md).
 *
 * A caller that finds nothing yields its core, and others have it for whole time slices. An answer
 * that comes meanwhile is as late as one that waits behind work.
 *
 *	poll, work        poll, none  poll, none                     poll, work
 *	|--- poll --------|-----------|--------- away ---------------|
 */
#ifndef TRANSPORT_LATE_H
#define TRANSPORT_LATE_H

#include "base/bits.h"
#include "base/time.h"
#include "config/limits.h"

#define LATE_MOST  (10 * TIME_MS)
#define LATE_FADES 64u /* shrinks by 1/LATE_FADES after each poll that had work */
#define LATE_STEPS 32u
#define LATE_SHIFT 8 /* the first step is 256 ns */

struct late {
	nanotime time; /* the larger one of: */
	nanotime poll; /* from a poll that had work to the next, lately at most */
	nanotime away; /* from one that had none to the next, lately at most */
	nanotime
		stall; /* that frames waited for the port, of the last LIMIT_PATH_STALL_MS at most */
	nanotime stall_at;
	uint8_t step; /* of `time`, rounded up */
};

/* Step 0 says nothing; 1, 3, 5... are 256 ns times 1, 2, 4..., and those between them half of both. */
static inline nanotime late_time(uint8_t step)
{
	nanotime octave;

	if (step == 0)
		return 0;
	octave = UINT64_C(1) << (LATE_SHIFT + (step - 1) / 2);
	return step % 2 == 0 ? octave + octave / 2 : octave;
}

/* Rounded up; the last step stands for everything longer. */
static inline uint8_t late_step(nanotime time)
{
	uint64_t units = MAX_OF((time + (1u << LATE_SHIFT) - 1) >> LATE_SHIFT, 1);
	uint32_t e = 63 - (uint32_t)__builtin_clzll(units);
	uint64_t octave = UINT64_C(1) << e;
	uint32_t step = 1 + 2 * e + (units > octave) + (units > octave + octave / 2);

	return (uint8_t)MIN_OF(step, LATE_STEPS - 1);
}

static inline void late_sum(struct late *l)
{
	l->time = MAX_OF(MAX_OF(l->poll, l->away), l->stall);
	l->step = late_step(l->time);
}

/*
 * The last poll began `gap` ago. Only polls that had work let the past fade: idle polls follow each
 * other so fast that they would forget everything within microseconds.
 */
static inline void late_polled(struct late *l, nanotime gap, bool worked, nanotime at)
{
	gap = MIN_OF(gap, LATE_MOST);
	if (!worked && gap < l->away && l->stall == 0)
		return; /* as most idle polls: nothing changes */
	if (worked) {
		l->poll = MAX_OF(gap, l->poll - l->poll / LATE_FADES);
		l->away -= l->away / LATE_FADES;
	} else {
		l->away = MAX_OF(gap, l->away);
	}
	if (l->stall != 0 && at - l->stall_at > LIMIT_PATH_STALL_MS * TIME_MS)
		l->stall = 0;
	late_sum(l);
}

/* A frame leaves that the port had refused for this long. */
static inline void late_stalled(struct late *l, nanotime waited, nanotime at)
{
	waited = MIN_OF(2 * waited, LATE_MOST);
	if (waited < l->stall)
		return;
	l->stall = waited;
	l->stall_at = at;
	late_sum(l);
}

#endif
