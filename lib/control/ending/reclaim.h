/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a client's objects, or of a context's, in slices: a program may leave hundreds of
 * thousands behind, and others want the control path meanwhile. Two parts, in this order:
 *
 *	withdrawal	nobody finds them any more: keys and numbers lead nowhere, no lcore has a
 *			queue pair of it. It ends with one grace period for all of them.
 *	release		they are freed, who leads to something before what it leads to. Copies of
 *			the client's memory are over by then.
 */
#ifndef CONTROL_RECLAIM_H
#define CONTROL_RECLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/time.h"

struct client;
struct engine_qp;
struct engine_ah;
struct mcast_group;

struct reclaim {
	struct client *client;
	uint32_t context; /* 0: all */
	uint32_t stage; /* of this part */
	uint32_t handle; /* next to look at */
	uint32_t lcore;
	LIST_HEAD(, engine_qp) gone; /* queue pairs that no lcore has any more */
	LIST_HEAD(, engine_ah) gone_ahs;
	struct mcast_group *groups; /* that they were the last members of */
};

/* Of zeros, or used before. A reclaim of a context may be cut short by that of its client. */
void reclaim_begin(struct reclaim *r, struct client *c, uint32_t context);

/* Goes on until then. True: that part is done. */
bool reclaim_withdraw(struct reclaim *r, nanotime until);
bool reclaim_release(struct reclaim *r, nanotime until);

#endif
