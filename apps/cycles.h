/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles a packet by stage, as people and programs read them. A packet counts where it is received and where
 * it is made; what reading the clock took is subtracted.
 */
#ifndef APPS_CYCLES_H
#define APPS_CYCLES_H

#include <stdio.h>

#include "json.h"
#include "protocol/command.h"

/* Packets received and made in the measured rounds. */
uint64_t cycles_packets(const struct reply_cycles *r);
/* Cycles of a stage, or of all that had work. */
double cycles_in(const struct reply_cycles *r, enum stage s);
double cycles_in_all(const struct reply_cycles *r);

/* Some engines, or both ends of one connection: then their sum is of one packet at both. */
struct cycles_table {
	const char *title;
	uint32_t columns; /* 1 or 2 */
	const char *name[2];
	const struct reply_cycles *of[2];
};

/* For one stage; s == STAGE_COUNT: for all. 0 if there were no packets. */
double cycles_a_packet(const struct cycles_table *t, uint32_t column, enum stage s);
double cycles_both_ends(const struct cycles_table *t, enum stage s);

void cycles_print(FILE *out, const struct cycles_table *t);
/* An object. */
void cycles_json(struct json *j, const char *key, const struct reply_cycles *r);

#endif
