/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs and address handles by their destination, so that a change of a MAC address only
 * costs those that use it.
 *
 *	news of a neighbour -> a round: each destination is looked up (bounded in number per second)
 *	another answer      -> the destination is late: its users are told, some in each slice
 *
 * If the kernel owns the addresses, paths from different own addresses have destinations of their
 * own, since the kernel's routes may depend on the source.
 *
 * A round, and telling the users of a late destination, are done in slices, so that the control
 * path does other work in between, and lcores get one message for many queue pairs. If an address
 * changes again meanwhile, its users only get the last answer.
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
 * Called before a queue pair or handle gets this path. Looks up the way as flow_resolve() does, and
 * reserves what destination_of_* will need. 0 or ENOMEM.
 */
int destination_find_way(struct engine *e, const struct qp_path *path, enum flow_state *state,
			 struct mac *mac);
/* The queue pair now has the path whose way was looked up. Cannot fail. */
void destination_of_qp(struct engine *e, struct engine_qp *q, const struct qp_path *path);
void destination_of_ah(struct engine *e, struct engine_ah *ah);
/* The queue pair no longer has a path. */
void destination_leave_qp(struct engine_qp *q);
void destination_leave_ah(struct engine_ah *ah);

/* Everything may have changed: begins a round, at once or when the last one is long enough ago. */
void destinations_news(struct destinations *ds);
/* Own addresses changed, and with them the headers of all frames. */
void destinations_stale(struct destinations *ds);
/* Whether an address resolution is under way for some; and whether some are unreachable. */
bool destinations_waiting(const struct destinations *ds);
bool destinations_unreachable(const struct destinations *ds);
/*
 * One slice of the work, with another look at those that wait or cannot be reached. Returns when to
 * call again: `now` if there is more, later if there is no memory for it, TIME_NEVER if there is
 * nothing to do.
 */
nanotime destinations_slice(struct engine *e, bool waiting, bool unreachable, nanotime now);

struct listed_neighbour;

/*
 * Fills in at most `room` of those behind the port, and *count. `from` is 0, or what the last call
 * returned; 0: that was all.
 */
uint64_t destinations_list(const struct destinations *ds, uint64_t from,
			   struct listed_neighbour *to, uint32_t room, uint32_t *count);

#endif
