/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On which lcore a connected queue pair lives: if possible on the one at whose queue of the port its peer's
 * packets arrive, or every packet has to cross (docs/decisions/0019-arrival.md). A queue pair is dealt to an lcore when it
 * is created, before anybody knows its peer. When it learns the peer (INIT to RTR) the port may say where packets
 * will arrive, because the peer's UDP source port follows from both numbers or from the flow label. Then the queue
 * pair moves there, unless that lcore has more than its share of connected ones.
 *
 * Control path, under engine.control_lock.
 */
#ifndef CONTROL_PLACING_H
#define CONTROL_PLACING_H

#include "control/control.h"

/*
 * The lcore for one more, of those with so many connected queue pairs each. `now`: where it is; `arrives`: where
 * its packets will arrive. Not the latter if that has more than the fewest, by an eighth of an even share and one.
 */
uint32_t placing_choose(const uint32_t *placed, uint32_t lcores, uint32_t now, uint32_t arrives);

/* It is about to be connected to this number at path->dgid, behind the port. */
void placing_connect(struct engine *e, struct engine_qp *q, const struct qp_path *path,
		     uint32_t dest_qpn);
/* It is not connected any more. */
void placing_leave(struct engine *e, struct engine_qp *q);

#endif
