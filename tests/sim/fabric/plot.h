/* SPDX-License-Identifier: BSD-3-Clause */
/* Rate, queue and window over time, as an SVG file that needs no other file. */
#ifndef SIM_PLOT_H
#define SIM_PLOT_H

#include <stdbool.h>

#include "base/time.h"

#define PLOT_SAMPLES 400u

struct net;
struct scenario_config;

struct plot_sample {
	double at; /* ns */
	double rate; /* bits a second through the bottleneck since the last sample */
	double queue; /* octets in the queue before it */
	double window; /* octets that a queue pair may have under way, on average */
};

struct plot {
	unsigned int samples;
	struct plot_sample sample[PLOT_SAMPLES];
	uint64_t octets; /* through the bottleneck at the last sample */
};

void plot_sample(struct plot *p, const struct net *n, nanotime now);
/* False: the file cannot be written. */
bool plot_write(const struct plot *p, const struct scenario_config *c, const char *path);

#endif
