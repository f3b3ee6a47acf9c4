/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "lcore/inside.h"
#include "lcore/paths.h"
#include "lcore/turns/ahead.h"
#include "transport/late.h"
#include "wire/gid_hash.h"

#define BUCKETS 256u

LIST_HEAD(path_list, lcore_path);

struct paths {
	struct late late;
	nanotime polled_at;
	struct path_list bucket[BUCKETS];
	struct path_list unused; /* among the first `made` */
	uint32_t used, of_user[LIMIT_CLIENTS]; /* their number, in all and by user */
	uint32_t serial; /* of the last path */
	uint32_t made; /* the entries behind were never used, and their memory was not touched */
	struct lcore_path path[LIMIT_PATHS];
};

struct paths *paths_create(void)
{
	return calloc(1, sizeof(struct paths));
}

void paths_destroy(struct paths *p)
{
	free(p);
}

/*
 * The last quarter is for users with few paths, as with everything that users share (decision
 * 0011). The program that has the engine inside may use all of it.
 */
static bool may_have_another(const struct paths *p, const struct client *c)
{
	return c->embedded || p->used < LIMIT_PATHS - LIMIT_PATHS / 4 ||
	       p->of_user[c->user] < LIMIT_PATHS / 16;
}

static struct lcore_path *path_new(struct paths *p, const struct client *c)
{
	struct lcore_path *path = LIST_FIRST(&p->unused);

	if (!may_have_another(p, c))
		return NULL;
	if (path != NULL)
		LIST_REMOVE(path, link);
	else if (p->made < LIMIT_PATHS)
		path = &p->path[p->made++];
	return path;
}

/* It counts for the user of this program until it goes, even if others use it. */
static void count_path(struct paths *p, struct lcore_path *path, const struct client *c)
{
	path->user = c->user;
	p->of_user[c->user]++;
	p->used++;
}

/* NULL: the table is full, or the user's share of it is used up. */
static struct lcore_path *path_to(struct lcore *l, const struct client *c, const struct gid *peer,
				  uint8_t traffic_class)
{
	struct paths *p = l->paths;
	uint64_t hash = gid_hash(l->engine->hash_secret, peer, traffic_class);
	struct path_list *list = &p->bucket[hash % BUCKETS];
	struct lcore_path *path;

	LIST_FOREACH(path, list, link)
	{
		if (path->traffic_class == traffic_class && gid_equal(&path->peer, peer))
			return path;
	}
	path = path_new(p, c);
	if (path == NULL)
		return NULL;
	memset(path, 0, sizeof(*path));
	path_init(&path->core);
	path->core.late = &p->late;
	TAILQ_INIT(&path->parked);
	for (uint32_t i = 0; i < LIMIT_PATH_USERS; i++)
		TAILQ_INIT(&path->of_user[i].qps);
	count_path(p, path, c);
	path->peer = *peer;
	path->traffic_class = traffic_class;
	path->serial = ++p->serial;
	LIST_INSERT_HEAD(list, path, link);
	return path;
}

/* The place where queue pairs of this user wait, or a free one. */
static struct parked_user *place_of(struct lcore_path *path, uint32_t user)
{
	struct parked_user *place = &path->of_user[user % LIMIT_PATH_USERS];

	for (uint32_t i = 0; i < LIMIT_PATH_USERS; i++) {
		struct parked_user *u = &path->of_user[i];

		if (TAILQ_EMPTY(&u->qps))
			place = u;
		else if (u->user == user)
			return u;
	}
	return place;
}

void paths_park(struct lcore *l, struct engine_qp *q)
{
	struct lcore_path *path = q->way;
	struct parked_user *u;

	assert(path != NULL && "only a path holds back");
	if (q->parked) /* it failed meanwhile, or was given something new */
		return;
	if (TAILQ_EMPTY(&path->parked))
		TAILQ_INSERT_TAIL(&l->held_paths, path, held_link);
	u = place_of(path, q->client->user);
	if (TAILQ_EMPTY(&u->qps)) {
		u->user = q->client->user;
		TAILQ_INSERT_TAIL(&path->parked, u, link);
	}
	TAILQ_INSERT_TAIL(&u->qps, q, park_link);
	q->parked = true;
	q->parked_at = (uint8_t)(u - path->of_user);
}

static void unpark(struct lcore *l, struct engine_qp *q)
{
	struct lcore_path *path = q->way;
	struct parked_user *u = &path->of_user[q->parked_at];

	if (!q->parked)
		return;
	TAILQ_REMOVE(&u->qps, q, park_link);
	q->parked = false;
	if (TAILQ_EMPTY(&u->qps))
		TAILQ_REMOVE(&path->parked, u, link);
	if (TAILQ_EMPTY(&path->parked))
		TAILQ_REMOVE(&l->held_paths, path, held_link);
}

/* The queue pair that has waited longest, of the user whose turn it is. NULL: none waits. */
static struct engine_qp *first_parked(const struct lcore_path *path)
{
	const struct parked_user *u = TAILQ_FIRST(&path->parked);

	return u != NULL ? TAILQ_FIRST(&u->qps) : NULL;
}

/* Resumes as many queue pairs as there is room for whole turns, but at least one. */
static void release(struct lcore *l, struct lcore_path *path, nanotime now)
{
	uint64_t turn = (uint64_t)LIMIT_TURN * path->core.packet;
	uint64_t room = path_room(&path->core, now), used = 0;
	struct engine_qp *q;

	while ((q = first_parked(path)) != NULL && (used == 0 || used < room) &&
	       qp_may_resume(q->core, now)) {
		struct parked_user *u = TAILQ_FIRST(&path->parked);

		if (ahead_helps(l))
			ahead_of_parked(q);
		TAILQ_REMOVE(&path->parked, u, link);
		TAILQ_INSERT_TAIL(&path->parked, u, link);
		unpark(l, q);
		used += qp_is_held(q->core) ? turn : 0;
		qp_resume(q->core);
		qp_settled(l, q, now);
	}
}

void paths_release(struct lcore *l, nanotime now)
{
	struct held_paths *held = &l->held_paths;
	struct lcore_path *path, *last = TAILQ_LAST(held, held_paths);

	for (uint32_t i = 0; i < LIMIT_ROUND && (path = TAILQ_FIRST(held)) != NULL; i++) {
		TAILQ_REMOVE(held, path, held_link);
		TAILQ_INSERT_TAIL(held, path, held_link);
		release(l, path, now);
		if (path == last)
			return;
	}
}

nanotime paths_next(const struct lcore *l, nanotime now)
{
	const struct lcore_path *path;
	nanotime next = TIME_NEVER;

	TAILQ_FOREACH(path, &l->held_paths, held_link)
	next = time_earlier(next, qp_resumes_at(first_parked(path)->core, now));
	return next;
}

void paths_polled(struct lcore *l, bool worked, nanotime now)
{
	struct paths *p = l->paths;

	late_polled(&p->late, p->polled_at != 0 ? now - p->polled_at : 0, worked, now);
	p->polled_at = now;
}

void paths_woken(struct lcore *l, nanotime now)
{
	l->paths->polled_at = now;
}

void paths_stalled(struct lcore *l, nanotime waited, nanotime now)
{
	late_stalled(&l->paths->late, waited, now);
}

void paths_leave(struct lcore *l, struct engine_qp *q)
{
	struct lcore_path *path = q->way;

	if (path == NULL)
		return;
	unpark(l, q);
	qp_give_path(q->core, NULL);
	q->way = NULL;
	if (--path->users > 0)
		return;
	LIST_REMOVE(path, link);
	l->paths->of_user[path->user]--;
	l->paths->used--;
	LIST_INSERT_HEAD(&l->paths->unused, path, link);
}

static bool has_way(const struct engine_qp *q)
{
	enum qp_state state = qp_state(q->core);

	return !q->unreliable && q->flow_state != FLOW_LOOP && state != QP_STATE_RESET &&
	       state != QP_STATE_INIT;
}

void paths_follow(struct lcore *l, struct engine_qp *q)
{
	struct lcore_path *path = NULL;
	struct qp_attributes a;

	if (has_way(q)) {
		qp_query(q->core, &a);
		path = path_to(l, q->client, &a.path.dgid, a.path.traffic_class);
	}
	if (path == q->way)
		return;
	if (path != NULL)
		path->users++;
	paths_leave(l, q);
	q->way = path;
	qp_give_path(q->core, path != NULL ? &path->core : NULL);
}

static struct listed_path describe(const struct lcore *l, const struct lcore_path *path)
{
	const struct path *p = &path->core;

	return (struct listed_path){ .peer = path->peer,
				     .lcore = (uint8_t)l->index,
				     .traffic_class = path->traffic_class,
				     .serial = path->serial,
				     .qps = path->users,
				     .parked = p->held,
				     .round_trip_ns = p->srtt,
				     .variation_ns = p->rttvar,
				     .least_ns = p->min_rtt,
				     .target_ns = p->samples > 0 ? path_target(p) : 0,
				     .window = p->window,
				     .flying = p->flying,
				     .samples = p->samples,
				     .sent = p->sent,
				     .again = p->events[PATH_AGAIN],
				     .acknowledged = p->acknowledged,
				     .overtaken = p->events[PATH_OVERTAKEN],
				     .reported = p->events[PATH_REPORTED],
				     .probes = p->events[PATH_PROBE],
				     .timeouts = p->events[PATH_TIMEOUT],
				     .cnps_received = p->events[PATH_CNP_RECEIVED],
				     .cnps_sent = p->events[PATH_CNP_SENT],
				     .cuts = p->events[PATH_CUT],
				     .waits = p->events[PATH_WAIT] };
}

uint32_t paths_list(const struct lcore *l, uint32_t from, struct listed_path *to, uint32_t room,
		    uint32_t *count)
{
	for (uint32_t i = from; i < l->paths->made; i++) {
		const struct lcore_path *path = &l->paths->path[i];

		if (path->users == 0)
			continue;
		if (*count == room)
			return i;
		to[(*count)++] = describe(l, path);
	}
	return 0;
}
