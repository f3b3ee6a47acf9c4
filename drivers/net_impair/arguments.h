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

#define IMPAIR_QUEUE_DEFAULT (256u << 10) /* octets */

/*
 * Reads a value as users write it, for the command line and the prompt. False: the text is not such
 * a value, and nothing was changed. The macros say what is accepted.
 */
#define IMPAIR_CHANCE_ACCEPTED "a fraction in 0 .. 1 or a percentage"
bool impair_read_chance(const char *text, uint64_t *threshold);
#define IMPAIR_DELAY_ACCEPTED "in 0 .. 60000000"
bool impair_read_delay(const char *text, uint64_t *us);
#define IMPAIR_RATE_ACCEPTED "bits a second, 100k .. 1000G (k, M, G: 1000, ...)"
bool impair_read_rate(const char *text, uint64_t *rate);
#define IMPAIR_OCTETS_ACCEPTED "octets, 1k .. 16M (k, M: 1024, ...)"
bool impair_read_octets(const char *text, uint64_t *octets);

/* `us` in cycles of a time stamp counter with `frequency`, cycles a second. */
uint64_t impair_delay_cycles(uint64_t us, uint64_t frequency);

/* Reads the arguments. Returns a negative errno if they are wrong; one line of the log says how. */
int impair_arguments_read(const char *text, struct impair_arguments *a);

#endif
