/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arguments of --vdev net_impair0,port=NAME[,dir=tx|rx|both][,seed=N][,drop=P][,duplicate=P]
 * [,reorder=P][,overtaken=N][,corrupt=P][,ce=P][,delay_us=N][,rate=BITS[,queue=OCTETS]
 * [,ecn=OCTETS]], with P like 0.01 or 1%. The port NAME must come before it.
 */
#ifndef DRIVERS_IMPAIR_ARGUMENTS_H
#define DRIVERS_IMPAIR_ARGUMENTS_H

#include "drivers/net_impair/impair.h"

struct impair_arguments {
	uint16_t lower; /* port */
	bool rx, tx; /* the impaired directions */
	struct impair_rules rules;
};

/* Reads them. A negative errno if they are wrong: one line of the log says how. */
int impair_arguments_read(const char *text, struct impair_arguments *a);

#endif
