/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: two nodes, pairs of queue pairs between them, a random workload on both sides of
 * each, a bad link, and virtual time. Everything follows from the seed: a run that fails is run
 * again from it. What is checked of every run:
 *
 *	every message arrives once, in order, with its octets, and nowhere else
 *	every request completes at most once, in order; it completes unless it is unsignaled
 *	nothing completes before its octets are in memory
 *	the run ends: there is always something to wait for while a message is under way
 *	a connection fails only where a fault was made, and as the specification says for that fault
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "link.h"

#define SIM_PAIRS     32u
#define SIM_FROM_SEED (-1.0)

struct sim_config {
	uint64_t seed;
	uint32_t messages; /* of each direction of each pair */
	uint32_t qps; /* pairs; 0: from the seed */
	double loss, duplicate, reorder, corrupt; /* SIM_FROM_SEED */
	double delay; /* ns; SIM_FROM_SEED */
	double faults; /* probability that a pair is given a fault; SIM_FROM_SEED */
	double fail_copies; /* probability of a copy; SIM_FROM_SEED is mostly 0 */
	double xrc; /* probability of an XRC pair: one direction; SIM_FROM_SEED */
	const char *pcap; /* NULL: none */
	bool unreliable; /* UC and UD: see lossy.h */
	bool bench; /* plain WRITEs and SENDs on a good link, as fast as it goes */
};

struct sim_result {
	bool ok;
	char why[512];
	struct link_counts link;
	uint64_t messages; /* that completed with success */
	uint64_t octets; /* of them */
	uint64_t broken; /* connections that failed, as they should */
	uint64_t requests; /* unreliable: that completed with success */
	nanotime time; /* virtual */
	uint64_t reasons[REASON_COUNT]; /* why frames and packets were dropped or refused */
};

/* The defaults: all that the seed can choose, it chooses. */
struct sim_config sim_defaults(void);
void sim_run(const struct sim_config *c, struct sim_result *r);

/* The command line of `uroce sim`. */
int sim_main(int argc, char **argv);

#endif
