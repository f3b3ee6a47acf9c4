/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lcore of a connected queue pair: if possible the one at whose queue of the port its peer's
 * packets arrive. Otherwise every packet has to cross (docs/decisions/0019-arrival.md). A queue
 * pair is assigned to an lcore when it is created, before its peer is known. When it learns the
 * peer (INIT to RTR) the port may tell where packets will arrive, because the peer's UDP source
 * port follows from both numbers or from the flow label. Then the queue pair moves to that lcore,
 * unless that lcore has more than its share of connected queue pairs. Control path, under
 * engine.control_lock.
 */
#ifndef CONTROL_PLACING_H
#define CONTROL_PLACING_H

#include "control/control.h"

/*
 * Chooses the lcore for one more queue pair. `placed`: the connected queue pairs of each lcore;
 * `now`: its present lcore; `arrives`: the one where its packets will arrive. That one is not chosen
 * if it has more than the fewest, by an eighth of an even share and one.
 */
uint32_t placing_choose(const uint32_t *placed, uint32_t lcores, uint32_t now, uint32_t arrives);

/* The queue pair is about to be connected to this number at path->dgid, behind the port. */
void placing_connect(struct engine *e, struct engine_qp *q, const struct qp_path *path,
		     uint32_t dest_qpn);
/* The queue pair is no longer connected. */
void placing_leave(struct engine *e, struct engine_qp *q);

#endif
