/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How soon a thread gets a core that other programs keep busy (docs/decisions/0020-waking.md).
 *
 * - A short time slice, from the kernel. A thread that wakes, and has had less than its share of the
 *   core, runs at once if its slice is shorter than that of the thread that runs. The share itself stays
 *   the same, so nothing starves. It needs no privilege.
 * - A thread that yields gets a core back when the other one's slice ends, which takes milliseconds; one
 *   that sleeps gets it when it is woken. So an lcore whose yields take long sleeps instead.
 */
#ifndef LCORE_URGENCY_H
#define LCORE_URGENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum urgency {
	URGENCY_NORMAL, /* it was not asked for, or no thread of uroce_start() polls */
	URGENCY_SLICE,
	URGENCY_UNKNOWN, /* the kernel has no slices of a thread's own (before Linux 6.12) */
	URGENCY_REFUSED, /* sched_setattr(2) failed */
	URGENCY_OTHER_POLICY, /* somebody has chosen one (chrt(1)), which stays */
};

/* "slice"; in the middle of a sentence. */
const char *urgency_name(enum urgency u);

/* Of the calling thread, until urgency_leave(). */
enum urgency urgency_take(void);
void urgency_leave(enum urgency u);

/* Whether programs keep a core busy that an lcore yields to. */
struct crowd {
	uint32_t late; /* yields in turn that took long */
	nanotime until; /* do not yield before */
};

/* The thread yielded at `from` and went on at `now`. */
void crowd_yielded(struct crowd *c, nanotime from, nanotime now);

static inline bool crowd_is_there(const struct crowd *c, nanotime now)
{
	return now < c->until;
}

#endif
