/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A campaign: many seeds of each of several settings, on all processors. Its runs are divided into
 * units of a few seeds of one setting. Each unit has a process of its own, so a run that crashes or
 * hangs is one failure and does not end the campaign. A file keeps the results (journal.h): if a
 * campaign is started again, it goes on where it stopped.
 */
#ifndef SIM_CAMPAIGN_H
#define SIM_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/sim.h"

#define CAMPAIGN_UNIT	  32u /* seeds */
#define CAMPAIGN_FAILURES 1000u /* failures kept with their reason; further ones are counted */
#define CAMPAIGN_JOBS	  256u

struct campaign {
	const char *path; /* of the file */
	uint64_t program; /* identifies this code: runs of other code are not mixed with its runs */
	uint32_t settings;
	uint64_t seed; /* the first */
	uint32_t seeds; /* of each setting */
	uint32_t messages; /* of a run */
	uint32_t jobs; /* processes at a time */
	uint32_t patience; /* seconds of a processor that a run may take */
	struct sim_config (*config)(uint32_t setting);
	void (*run)(const struct sim_config *c, struct sim_result *r);
	/* If not NULL: called whenever this many of all runs are done. */
	void (*progress)(uint64_t done, uint64_t all, uint64_t failed);
};

/* Sums over runs. */
struct tally {
	uint64_t runs, failed, messages, packets, lost, broken;
	uint64_t time; /* virtual ns */
};

struct campaign_failure {
	uint32_t setting;
	uint64_t seed;
	char why[240];
};

struct campaign_result {
	struct tally *of; /* by setting */
	struct campaign_failure *failure;
	uint32_t failures; /* kept */
	uint64_t before; /* runs that earlier calls had done */
};

void tally_add(struct tally *to, const struct tally *t);

/*
 * Runs the rest of the campaign. False: *why says in one line what is wrong with the file. Give the
 * result to campaign_free in any case.
 */
bool campaign_execute(const struct campaign *c, struct campaign_result *r, char why[256]);
void campaign_free(struct campaign_result *r);

#endif
