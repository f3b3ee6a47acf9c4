/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How soon a thread gets a core that other programs keep busy (docs/decisions/0020-waking.md).
 *
 * - The thread asks the kernel for a short time slice. A thread that wakes, and has had less than
 *   its share of the core, runs at once if its slice is shorter than that of the running thread.
 *   The share itself stays the same, so nothing starves. No privilege is needed.
 * - A thread that yields gets the core back when the other thread's slice ends, which takes
 *   milliseconds. A thread that sleeps gets it when it is woken. So an lcore whose yields take long
 *   sleeps instead.
 */
#ifndef LCORE_URGENCY_H
#define LCORE_URGENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum urgency {
	URGENCY_NORMAL, /* no slice was asked for, or no thread of uroce_start() polls */
	URGENCY_SLICE,
	URGENCY_UNKNOWN, /* the kernel has no slices for single threads (before Linux 6.12) */
	URGENCY_REFUSED, /* sched_setattr(2) failed */
	URGENCY_OTHER_POLICY, /* somebody has chosen another policy (chrt(1)), which stays */
};

/* For example "slice". The names fit the middle of a sentence. */
const char *urgency_name(enum urgency u);

/* For the calling thread, until urgency_leave(). */
enum urgency urgency_take(void);
void urgency_leave(enum urgency u);

/* Whether programs keep an lcore's core busy, so that yielding takes long. */
struct crowd {
	uint32_t late; /* successive yields that took long */
	nanotime until; /* no yield before then */
};

/* The thread yielded at `from` and went on at `now`. */
void crowd_yielded(struct crowd *c, nanotime from, nanotime now);

/*
 * How long an idle lcore yields before it sleeps. `napped`: frames that arrive while it sleeps do not wake it. A late yield alone
 * uses up the shorter time, and says little by itself, so another one follows.
 */
nanotime crowd_yields_for(const struct crowd *c, bool napped);

static inline bool crowd_is_there(const struct crowd *c, nanotime now)
{
	return now < c->until;
}

#endif
