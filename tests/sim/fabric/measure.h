/* SPDX-License-Identifier: BSD-3-Clause */
/* Measurements of messages, between a beginning and an end. */
#ifndef SIM_MEASURE_H
#define SIM_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct measure {
	nanotime begin, end;
	double *took; /* ns, of each message that completed between them */
	uint64_t messages, room;
	uint32_t failed; /* queue pairs that gave up */
	nanotime last_failure;
	char first_failure[160]; /* of the core's; "": none */
};

void measure_free(struct measure *m);
/* A message that was posted then is complete. False: that was not between beginning and end. */
bool measure_message(struct measure *m, nanotime posted_at, nanotime now);
/* A message that is still under way at the end took at least that long. */
void measure_pending(struct measure *m, nanotime posted_at);
/* The longest time, in ns, of this share of the messages; 0: there were none. */
double measure_quantile(struct measure *m, double share);

/* Jain's fairness of n values: 1 if all are equal, 1/n if one has everything. */
double measure_fairness(const double *value, uint32_t n);

#endif
