/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator's other kind of run (sim_config.unreliable): services without acknowledgements (UC,
 * UD) over a bad link. Messages may be lost. Every run checks that
 *
 *	a message that arrives was sent, is whole, and is in the right place
 *	every request completes once and in order, whatever became of its packets
 *	nothing on the link takes a queue pair out of RTS; a local error stops only the send queue
 *	without loss and reordering, and with receive requests in time, every message arrives once
 *	and in order
 */
#ifndef SIM_LOSSY_H
#define SIM_LOSSY_H

#include "sim.h"

/*
 * In the result `messages` counts messages that arrived, and `broken` how often a send queue
 * stopped.
 */
void lossy_run(const struct sim_config *c, struct sim_result *r);

#endif
