/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: two nodes, pairs of queue pairs between them, a random workload on both sides of
 * each, a bad link, and virtual time. Everything follows from the seed, so a failed run can be
 * repeated. Every run checks that:
 *
 *	every message arrives once, in order, unchanged, and in the right place
 *	every request completes at most once and in order, and does complete unless it is unsignaled
 *	no request completes before its octets are in memory
 *	the run ends: while a message is under way there is always an event to wait for
 *	a connection fails only if it has a fault, and as the specification says for that fault
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
	uint32_t messages; /* in each direction of each pair */
	uint32_t qps; /* number of pairs; 0: from the seed */
	double loss, duplicate, reorder, corrupt; /* SIM_FROM_SEED */
	double delay; /* ns; SIM_FROM_SEED */
	double faults; /* probability that a pair has a fault; SIM_FROM_SEED */
	double fail_copies; /* probability for a copy; SIM_FROM_SEED is mostly 0 */
	double xrc; /* probability of an XRC pair, which is one-directional; SIM_FROM_SEED */
	const char *pcap; /* NULL: none */
	bool unreliable; /* UC and UD: see lossy.h */
	bool bench; /* plain WRITEs and SENDs on a good link, as fast as possible */
};

struct sim_result {
	bool ok;
	char why[512];
	struct link_counts link;
	uint64_t messages; /* that completed with success */
	uint64_t octets; /* of them */
	uint64_t broken; /* connections that failed as expected */
	uint64_t requests; /* unreliable: requests that completed with success */
	uint64_t alike; /* packets that were taken as in a run */
	nanotime time; /* virtual */
	uint64_t reasons[REASON_COUNT]; /* why frames and packets were dropped or refused */
};

/* The defaults: the seed chooses everything that it can. */
struct sim_config sim_defaults(void);
void sim_run(const struct sim_config *c, struct sim_result *r);

/* The command line of `uroce sim`. */
int sim_main(int argc, char **argv);

#endif
