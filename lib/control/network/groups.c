/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of the multicast groups that lcores look up (lcore/mcast.c says how they are read).
 *
 * Atomics: lcores walk the list and its members without a lock. Release: an lcore that sees a group
 * or member sees it complete. Unlinked entries are freed after a grace period.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "control/control.h"

static void group_free(struct engine *e, struct mcast_group *g)
{
	user_give(&e->control->users, g->user, RESOURCE_GROUPS, 1);
	user_drop(g->user);
	free(g);
}

/* A new group that is not in the table yet. NULL: *error says why. */
static struct mcast_group *group_make(struct engine *e, const struct gid *gid, struct user *user,
				      int *error)
{
	struct mcast_group *g;

	*error = ENOMEM;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return NULL;
	if (!user_take(&e->control->users, user, RESOURCE_GROUPS, 1)) {
		*error = EUSERS;
		free(g);
		return NULL;
	}
	g->gid = *gid;
	g->user = user_hold(user);
	*error = neighbour_agent_join(e, gid);
	if (*error == 0)
		return g;
	group_free(e, g);
	return NULL;
}

static void group_unlink(struct engine *e, struct mcast_group *g)
{
	struct mcast_group **link = mcast_bucket(e, &g->gid);

	while (*link != g)
		link = &(*link)->next;
	__atomic_store_n(link, g->next, __ATOMIC_RELEASE);
	neighbour_agent_leave(e, &g->gid);
}

/* Whether the program already has the group, through another of its queue pairs. */
static bool has_member_of(const struct mcast_group *g, const struct client *c)
{
	for (uint32_t i = 0; g != NULL && i < LIMIT_MCAST_QPS; i++)
		if (g->member[i] != NULL && g->member[i]->client == c)
			return true;
	return false;
}

int mcast_attach(struct engine *e, const struct gid *gid, struct engine_qp *q)
{
	struct mcast_group *g = mcast_find(e, gid), **bucket = mcast_bucket(e, gid);
	bool is_new = g == NULL, has_it = has_member_of(g, q->client);
	struct client_objects *o = q->client->objects;
	uint32_t place = 0;
	int error;

	if (mcast_is_member(e, gid, q))
		return 0;
	if (!has_it && o->groups >= LIMIT_MCAST_GROUPS)
		return ENOMEM;
	if (is_new)
		g = group_make(e, gid, o->account.user, &error);
	if (g == NULL)
		return error;
	while (place < LIMIT_MCAST_QPS && g->member[place] != NULL)
		place++;
	if (place == LIMIT_MCAST_QPS)
		return ENOMEM;
	__atomic_store_n(&g->member[place], q, __ATOMIC_RELEASE);
	g->members++;
	q->groups++;
	o->groups += !has_it;
	if (!is_new)
		return 0;
	g->next = *bucket;
	__atomic_store_n(bucket, g, __ATOMIC_RELEASE);
	return 0;
}

/* True: it was the last member. The group is unlinked, to be freed after a grace period. */
static bool member_remove(struct engine *e, struct mcast_group *g, struct engine_qp *q)
{
	for (uint32_t i = 0; i < LIMIT_MCAST_QPS; i++) {
		if (g->member[i] != q)
			continue;
		__atomic_store_n(&g->member[i], NULL, __ATOMIC_RELEASE);
		q->groups--;
		q->client->objects->groups -= !has_member_of(g, q->client);
		if (--g->members > 0)
			return false;
		group_unlink(e, g);
		return true;
	}
	return false;
}

int mcast_detach(struct engine *e, const struct gid *gid, struct engine_qp *q)
{
	struct mcast_group *g = mcast_find(e, gid);

	if (g == NULL || !mcast_is_member(e, gid, q))
		return EINVAL;
	if (member_remove(e, g, q)) {
		engine_grace_period(e);
		group_free(e, g);
	}
	return 0;
}

struct mcast_group *mcast_forget(struct engine *e, struct engine_qp *q,
				 struct mcast_group *unlinked)
{
	for (uint32_t b = 0; b < ARRAY_SIZE(e->mcast) && q->groups > 0; b++) {
		struct mcast_group *g, *next;

		for (g = e->mcast[b]; g != NULL && q->groups > 0; g = next) {
			next = g->next;
			if (!member_remove(e, g, q))
				continue;
			g->freed_next = unlinked;
			unlinked = g;
		}
	}
	return unlinked;
}

void mcast_free(struct engine *e, struct mcast_group *unlinked)
{
	while (unlinked != NULL) {
		struct mcast_group *next = unlinked->freed_next;

		group_free(e, unlinked);
		unlinked = next;
	}
}
