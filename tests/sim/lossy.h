/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator's other kind of run (sim_config.unreliable): services without acknowledgements (UC, UD) over a bad link.
 * Nothing need arrive; checked of every run is that
 *
 *	what arrives is a message that was sent, whole, and nowhere else
 *	every request completes once, in order, as it should, whatever became of its packets
 *	nothing on the link takes a queue pair out of RTS; a local error stops the send queue alone
 *	without loss and disorder, and with receive requests in time, everything arrives once, in order
 */
#ifndef SIM_LOSSY_H
#define SIM_LOSSY_H

#include "sim.h"

/* In the result, messages are those that arrived, and broken is how often a send queue stopped. */
void lossy_run(const struct sim_config *c, struct sim_result *r);

#endif
