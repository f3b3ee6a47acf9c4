/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who sends to which address: queue pairs and address handles by their destination, so that a MAC
 * address that changes costs those that use it, and nobody else.
 *
 *	news of a neighbour -> a round: each destination is looked at (bounded in number per second)
 *	another answer      -> the destination is late: its users are told, some in each slice
 *
 * A round and the users of a late destination are gone through in slices, so that the control path
 * has other work done in between, and lcores get one message for many queue pairs. An address that
 * changes again meanwhile is told once, with its last answer.
 *
 * Control path, under engine.control_lock. Engines without a port have none of this.
 */
#ifndef CONTROL_DESTINATIONS_H
#define CONTROL_DESTINATIONS_H

#include "control/control.h"

struct destination;
struct destinations;

struct destinations *destinations_new(void);
void destinations_free(struct destinations *ds);

/*
 * Before a queue pair or handle is given this path: the way there, as flow_resolve, and whatever
 * destination_of_* will need. 0 or ENOMEM.
 */
int destination_find_way(struct engine *e, const struct gid *gid, enum flow_state *state,
			 struct mac *mac);
/* It has the path that way was found for. Cannot fail. */
void destination_of_qp(struct engine *e, struct engine_qp *q, const struct gid *gid);
void destination_of_ah(struct engine *e, struct engine_ah *ah);
/* It has none any more. */
void destination_leave_qp(struct engine_qp *q);
void destination_leave_ah(struct engine_ah *ah);

/* Everything may have changed: a round begins, at once or when the last one is long enough ago. */
void destinations_news(struct destinations *ds);
/* Our own addresses changed: so did all envelopes. */
void destinations_stale(struct destinations *ds);
/* Whether the MAC address of some is being asked for, and whether some cannot be reached. */
bool destinations_waiting(const struct destinations *ds);
bool destinations_unreachable(const struct destinations *ds);
/*
 * A slice of what is to be done, with another look at those that wait or cannot be reached. Returns
 * when to be called again: `now` if there is more, TIME_NEVER if nothing is to be done.
 */
nanotime destinations_slice(struct engine *e, bool waiting, bool unreachable, nanotime now);

#endif
