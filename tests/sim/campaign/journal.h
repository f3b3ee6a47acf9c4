/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of a campaign. Its first line says which campaign it is of. Then come units:
 *
 *	failure SETTING SEED WHY		any number of them, of the unit that follows
 *	unit NUMBER RUNS FAILED MESSAGES PACKETS LOST BROKEN TIME
 *
 * A unit counts when its line is whole. What a killed campaign left behind the last one is cut off.
 */
#ifndef SIM_JOURNAL_H
#define SIM_JOURNAL_H

#include "campaign.h"

struct journal {
	int fd;
	bool *done; /* by unit */
	uint32_t units;
};

uint32_t campaign_units(const struct campaign *c);
/* Setting of a unit. Consecutive units have different settings, so that all settings advance. */
static inline uint32_t unit_setting(const struct campaign *c, uint32_t unit)
{
	return unit % c->settings;
}

/* Opens or makes the file, and adds up its results. False: *why says why not. */
bool journal_open(struct journal *j, const struct campaign *c, struct campaign_result *r,
		  char why[256]);
/* Adds a unit to the file and to the result. False: the file cannot be written. */
bool journal_add(struct journal *j, const struct campaign *c, struct campaign_result *r,
		 uint32_t unit, const struct tally *t, const struct campaign_failure *failure,
		 uint32_t failures);
void journal_close(struct journal *j);

#endif
