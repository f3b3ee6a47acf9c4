/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frees the objects of a client or a context in slices: a program may leave hundreds of thousands,
 * and the control path has other work meanwhile. Two parts, in this order:
 *
 *	withdrawal	they cannot be found any more: keys and numbers are unknown, no lcore has a
 *			queue pair of it. It ends with one grace period for all of them.
 *	release		they are freed, referrers before what they refer to. Copies of
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
	uint32_t handle; /* of the next object */
	uint32_t lcore;
	LIST_HEAD(, engine_qp) gone; /* queue pairs that no lcore has any more */
	LIST_HEAD(, engine_ah) gone_ahs;
	struct mcast_group *groups; /* groups whose last members they were */
};

/* `r` is zero or was used before. The reclaim of a client may interrupt that of its context. */
void reclaim_begin(struct reclaim *r, struct client *c, uint32_t context);

/* Continues until then. True: that part is done. */
bool reclaim_withdraw(struct reclaim *r, nanotime until);
bool reclaim_release(struct reclaim *r, nanotime until);

#endif
