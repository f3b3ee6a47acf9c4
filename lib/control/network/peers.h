/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which queue pair is connected to which. RC, UC and XRC packets do not name their sender: a peer
 * behind the port accepts every packet from this engine's address as its own peer's. So at any time
 * a queue pair there is reserved for the queue pairs of one user here, the first that connected. It
 * is free again when these are in RESET, in ERR or destroyed. Between queue pairs of this engine
 * lcores check each packet's sender instead (qp_check_origin), and a number that is the peer of a
 * queue pair is not assigned again.
 *
 * Control path, under engine.control_lock.
 */
#ifndef CONTROL_PEERS_H
#define CONTROL_PEERS_H

#include "control/control.h"

int peers_open(struct engine *e);
void peers_close(struct engine *e);

/* Whether another user's queue pair is connected to queue pair qpn at gid. Counts refusals. */
bool peers_taken(struct engine *e, const struct engine_qp *q, const struct gid *gid, uint32_t qpn);
/*
 * This queue pair is now connected to queue pair qpn at the address of its vector, instead of its
 * last peer.
 */
void peers_enter(struct engine *e, struct engine_qp *q, uint32_t qpn);
/* The queue pair is no longer connected. */
void peers_leave(struct engine_qp *q);

/*
 * Reserves a number for a new queue pair of this lcore, as directory_reserve() does, but none to
 * which an older queue pair here is still connected. 0: there is none.
 */
uint32_t peers_reserve_number(struct engine *e, uint32_t lcore, struct engine_qp *q);

/*
 * Whether the program may see everybody's numbers: root, the engine's own user, an embedding
 * program.
 */
bool call_sees_all(const struct call *call);
/* ... or those of this client, for its own user. */
bool call_sees(const struct call *call, const struct client *c);
/* Whether the program may claim that this number is its own queue pair's. */
bool call_may_name(const struct call *call, uint32_t qpn);

#endif
