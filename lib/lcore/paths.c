/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "lcore/paths.h"

#define BUCKETS 256u

LIST_HEAD(path_list, lcore_path);

struct paths {
	struct path_list bucket[BUCKETS];
	struct path_list unused; /* among the first `made` */
	uint32_t made; /* those behind were never used: their memory is not touched */
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

static struct path_list *bucket_of(struct paths *p, const struct gid *peer, uint8_t traffic_class)
{
	uint32_t hash = traffic_class;

	for (uint32_t i = 0; i < sizeof(peer->octet); i++)
		hash = hash * 31 + peer->octet[i];
	return &p->bucket[(hash ^ hash >> 8) % BUCKETS];
}

static struct lcore_path *path_new(struct paths *p)
{
	struct lcore_path *path = LIST_FIRST(&p->unused);

	if (path != NULL)
		LIST_REMOVE(path, link);
	else if (p->made < LIMIT_PATHS)
		path = &p->path[p->made++];
	return path;
}

/* NULL: there are so many already. */
static struct lcore_path *path_to(struct paths *p, const struct gid *peer, uint8_t traffic_class)
{
	struct path_list *list = bucket_of(p, peer, traffic_class);
	struct lcore_path *path;

	LIST_FOREACH(path, list, link)
	{
		if (path->traffic_class == traffic_class && gid_equal(&path->peer, peer))
			return path;
	}
	path = path_new(p);
	if (path == NULL)
		return NULL;
	memset(path, 0, sizeof(*path));
	path_init(&path->core);
	path->peer = *peer;
	path->traffic_class = traffic_class;
	LIST_INSERT_HEAD(list, path, link);
	return path;
}

void paths_leave(struct lcore *l, struct engine_qp *q)
{
	struct lcore_path *path = q->way;

	if (path == NULL)
		return;
	qp_give_path(q->core, NULL);
	q->way = NULL;
	if (--path->users > 0)
		return;
	LIST_REMOVE(path, link);
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
		path = path_to(l->paths, &a.path.dgid, a.path.traffic_class);
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
				     .lcore = l->index,
				     .traffic_class = path->traffic_class,
				     .qps = path->users,
				     .round_trip_ns = p->srtt,
				     .variation_ns = p->rttvar,
				     .least_ns = p->min_rtt,
				     .samples = p->samples,
				     .again = p->events[PATH_AGAIN],
				     .overtaken = p->events[PATH_OVERTAKEN],
				     .reported = p->events[PATH_REPORTED],
				     .probes = p->events[PATH_PROBE],
				     .timeouts = p->events[PATH_TIMEOUT],
				     .cnps_received = p->events[PATH_CNP_RECEIVED],
				     .cnps_sent = p->events[PATH_CNP_SENT] };
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
