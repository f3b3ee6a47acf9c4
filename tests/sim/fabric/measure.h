/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured of messages, between a beginning and an end. */
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
/* A message that was posted then is complete. False: that is not between beginning and end. */
bool measure_message(struct measure *m, nanotime posted_at, nanotime now);
/* One that is still under way at the end took so long at least. */
void measure_pending(struct measure *m, nanotime posted_at);
/* The time that this share of the messages took at most, ns; 0: there were none. */
double measure_quantile(struct measure *m, double share);

/* Jain's fairness of n values: 1 if all are equal, 1/n if one has everything. */
double measure_fairness(const double *value, uint32_t n);

#endif
