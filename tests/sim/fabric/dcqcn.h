/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rate of one queue pair under DCQCN (Zhu et al., SIGCOMM 2015), as RoCE hardware has it. A CNP
 * cuts the rate by half of alpha, which follows how often CNPs come. Without CNPs the rate returns
 * to the old one in five steps and then grows. It is here for comparison.
 */
#ifndef SIM_DCQCN_H
#define SIM_DCQCN_H

#include "base/time.h"

struct dcqcn {
	double most; /* bits a second of the line */
	double rate, target, alpha;
	nanotime alpha_at; /* alpha decays then */
	nanotime step_at; /* the rate grows then */
	unsigned int steps; /* by time since the last cut */
	unsigned int octet_steps; /* by octets */
	double octets; /* sent since the last of those */
};

void dcqcn_init(struct dcqcn *d, double most);
void dcqcn_notified(struct dcqcn *d, nanotime now); /* a CNP came */
void dcqcn_sent(struct dcqcn *d, double octets, nanotime now);
/* Bits a second now. */
double dcqcn_rate(struct dcqcn *d, nanotime now);

#endif
