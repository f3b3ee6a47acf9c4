/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast queue pairs send and receive, by packet sequence numbers that are looked at again and
 * again, and where there are none by counts of packets. The numbers have 24 bits: between two looks
 * a queue pair must move by less than half of that, which at LOOK_EVERY is 16 million packets a
 * second.
 */
#ifndef APPS_TOP_LOOK_H
#define APPS_TOP_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/command.h"

#define LOOK_EVERY 0.5 /* seconds */

struct seen_qp {
	struct listed_qp qp;
	uint64_t sent, received; /* packets, since look_restart */
};

/* One look at all queue pairs. All zero: no look yet. */
struct look {
	struct seen_qp *qp; /* by their numbers */
	uint32_t qps, room;
};

/* Adds a queue pair of a list, in any order. False: no memory. */
bool look_add(struct look *l, const struct listed_qp *qp);
/*
 * The look is complete: counts what each queue pair has done since the look before, and what it had
 * done until then. One that was not there, or was connected to another, begins with nothing.
 */
void look_follow(struct look *now, const struct look *before);
/* Starts the counts anew. */
void look_restart(struct look *l);
/* Empties the look; its memory stays until look_free. */
void look_clear(struct look *l);
void look_free(struct look *l);

#endif
