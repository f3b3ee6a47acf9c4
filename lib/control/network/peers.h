/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose queue pair is connected to whom. The wire names no sender of RC, UC and XRC packets: a peer
 * behind the port takes what comes from our address for its own peer's. So a queue pair there is
 * for the queue pairs of one user here, those who were first; it is free again when they are reset,
 * in ERR or destroyed. Between queue pairs of this engine lcores look at each packet's sender
 * instead (qp_check_origin), and numbers that are somebody's peer are not given again.
 *
 * Control path, under engine.control_lock.
 */
#ifndef CONTROL_PEERS_H
#define CONTROL_PEERS_H

#include "control/control.h"

int peers_open(struct engine *e);
void peers_close(struct engine *e);

/* Whether a queue pair of another user is connected to queue pair qpn at gid; it is counted. */
bool peers_taken(struct engine *e, const struct engine_qp *q, const struct gid *gid, uint32_t qpn);
/* This queue pair is connected to that one; replaces what was said before. */
void peers_enter(struct engine *e, struct engine_qp *q, const struct gid *gid, uint32_t qpn);
/* It is connected to nobody any more. */
void peers_leave(struct engine_qp *q);

/*
 * A number for a new queue pair of this lcore, as directory_reserve, but none that an older one here
 * is still connected to. 0: there is none.
 */
uint32_t peers_reserve_number(struct engine *e, uint32_t lcore, struct engine_qp *q);

/* The program may see everybody's numbers: root, the engine's own user, who embeds it. */
bool call_sees_all(const struct call *call);
/* ... this client's: its user's, too. */
bool call_sees(const struct call *call, const struct client *c);
/* The program may say of this number that it is its own queue pair's. */
bool call_may_name(const struct call *call, uint32_t qpn);

#endif
