/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paths of an lcore: one for each peer (address and traffic class; the engine has one VLAN) to
 * which a connected queue pair of this lcore sends through the port. Paths come and go with their
 * queue pairs. Messages of the control path make them, so that the data path allocates nothing. A
 * queue pair whose packets stay inside the engine has no path, because there is no network in
 * between.
 */
#ifndef LCORE_PATHS_H
#define LCORE_PATHS_H

#include "lcore/lcore.h"
#include "protocol/command.h"
#include "transport/path.h"

/* Queue pairs of a user that a path holds back, in their order. */
struct parked_user {
	struct parked_list qps;
	uint32_t user; /* client.user */
	TAILQ_ENTRY(parked_user) link; /* while there are some */
};

TAILQ_HEAD(parked_users, parked_user);

struct lcore_path {
	struct path core;
	struct gid peer;
	uint8_t traffic_class;
	uint32_t serial;
	uint32_t users; /* queue pairs */
	uint32_t user; /* client.user: the user for whom it counts */
	struct parked_users parked; /* those that it holds back: users take turns */
	struct parked_user of_user[LIMIT_PATH_USERS];
	TAILQ_ENTRY(lcore_path) held_link; /* in the list of those that hold some back */
	LIST_ENTRY(lcore_path) link; /* in its bucket, or in the list of free ones */
};

struct paths *paths_create(void);
void paths_destroy(struct paths *p);

/*
 * By lcore_call: the state or address of this queue pair changed. It gets the path that fits now.
 */
void paths_follow(struct lcore *l, struct engine_qp *q);
/* ... the queue pair goes. */
void paths_leave(struct lcore *l, struct engine_qp *q);

/*
 * By lcore_call: describes its paths from number `from` on, as many as there is room for. Returns
 * the number of the first that had none, or 0.
 */
uint32_t paths_list(const struct lcore *l, uint32_t from, struct listed_path *to, uint32_t room,
		    uint32_t *count);
/*
 * The path holds the queue pair back (NEXT_HELD). It costs nothing until its turn comes. Users take
 * turns, so that one with many queue pairs keeps others waiting no longer than one with a single
 * queue pair.
 */
void paths_park(struct lcore *l, struct engine_qp *q);
/* Queue pairs that may send now become ready, in fair turns. */
void paths_release(struct lcore *l, nanotime now);
/* When a queue pair that is held back may send even if nothing arrives; TIME_NEVER: not before. */
nanotime paths_next(const struct lcore *l, nanotime now);
/* A poll begins at `now`. `worked`: the last one had work. Round trips include the time between. */
void paths_polled(struct lcore *l, bool worked, nanotime now);
/* The lcore slept. An arrival would have woken it, so nothing was late meanwhile. */
void paths_woken(struct lcore *l, nanotime now);
/* A frame leaves; the port had refused it for this long. */
void paths_stalled(struct lcore *l, nanotime waited, nanotime now);

#endif
