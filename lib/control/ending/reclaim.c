/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/ending/reclaim.h"

#include "control/cm/cm_control.h"
#include "control/binds.h"
#include "control/control.h"
#include "control/commands/raw_control.h"
#include "lcore/srq.h"
#include "lcore/window.h"
#include "lcore/xrc.h"

void reclaim_begin(struct reclaim *r, struct client *c, uint32_t context)
{
	/* The lists still have what an interrupted reclaim has withdrawn: this one frees it. */
	r->client = c;
	r->context = context;
	r->stage = r->handle = r->lcore = 0;
}

/* ---- objects of one kind ---- */

typedef void one_object(struct reclaim *r, void *object);

/* Visits some objects of a kind. True: all of them were visited. */
static bool each_object(struct reclaim *r, enum object_kind kind, one_object *one)
{
	const struct handle_table *t = &r->client->objects->table[kind];

	for (uint32_t n = 0; n < LIMIT_RECLAIM && r->handle <= t->used; r->handle++) {
		void *object = t->slot[r->handle];

		if (object == NULL ||
		    (r->context != 0 && context_of_object(kind, object) != r->context))
			continue;
		one(r, object);
		n++;
	}
	return r->handle > t->used;
}

/* ---- withdrawal ---- */

static void end_cm_id(struct reclaim *r, void *object)
{
	cm_id_free(object);
}

static void end_cm_channel(struct reclaim *r, void *object)
{
	cm_channel_free(object);
}

/*
 * They belong to no context, so only the end of a client frees them. Ids first, since they use
 * channels.
 */
static bool end_cm_ids(struct reclaim *r)
{
	return r->context != 0 || each_object(r, OBJECT_CM_ID, end_cm_id);
}

static bool end_cm_channels(struct reclaim *r)
{
	if (r->context != 0)
		return true;
	if (!each_object(r, OBJECT_CM_CHANNEL, end_cm_channel))
		return false;
	cm_flush(r->client->engine);
	return true;
}

static bool end_raw(struct reclaim *r)
{
	raw_reclaim(r->client, r->context);
	return true;
}

/*
 * On the lcore, so that no doorbell finds a queue pair between the loss of its handle and its
 * detachment.
 */
static void detach_some(struct lcore *l, void *arg, nanotime now)
{
	struct reclaim *r = arg;
	struct handle_table *t = &r->client->objects->table[OBJECT_QP];
	uint32_t end = r->handle + LIMIT_RECLAIM_DETACH;

	for (; r->handle < end && r->handle <= t->used; r->handle++) {
		struct engine_qp *q = t->slot[r->handle];

		if (q == NULL || q->lcore != l || (r->context != 0 && q->context != r->context))
			continue;
		handle_withdraw(t, r->handle);
		lcore_qp_detach(l, q, now);
		LIST_REMOVE(q, engine_link);
		LIST_INSERT_HEAD(&r->gone, q, engine_link);
	}
}

static bool detach_qps(struct reclaim *r)
{
	const struct handle_table *t = &r->client->objects->table[OBJECT_QP];
	struct engine *e = r->client->engine;

	if (t->count == 0)
		return true;
	lcore_call(&e->lcore[r->lcore], detach_some, r);
	if (r->handle <= t->used)
		return false;
	r->handle = 1;
	return ++r->lcore == e->lcores;
}

static bool finish_operations(struct reclaim *r)
{
	operations_finish(r->client->engine);
	return true;
}

static void leave_target(struct reclaim *r, void *object)
{
	target_free(r->client, object);
}

static bool leave_targets(struct reclaim *r)
{
	return each_object(r, OBJECT_TARGET, leave_target);
}

static void withdraw_ah(struct reclaim *r, void *object)
{
	struct engine_ah *ah = object;

	ah_withdraw(r->client, ah);
	LIST_INSERT_HEAD(&r->gone_ahs, ah, engine_link);
}

static bool withdraw_ahs(struct reclaim *r)
{
	return each_object(r, OBJECT_AH, withdraw_ah);
}

static void withdraw_mw(struct reclaim *r, void *object)
{
	mw_withdraw(r->client, object);
}

static bool withdraw_mws(struct reclaim *r)
{
	return each_object(r, OBJECT_MW, withdraw_mw);
}

static void withdraw_mr(struct reclaim *r, void *object)
{
	mr_withdraw(r->client, object);
}

static bool withdraw_mrs(struct reclaim *r)
{
	return each_object(r, OBJECT_MR, withdraw_mr);
}

static void withdraw_srq(struct reclaim *r, void *object)
{
	srq_withdraw(r->client, object);
}

static bool withdraw_srqs(struct reclaim *r)
{
	return each_object(r, OBJECT_SRQ, withdraw_srq);
}

/* In one slice: a group has at most 64 members. */
static bool leave_groups(struct reclaim *r)
{
	struct engine_qp *q;

	if (r->client->objects->groups > 0)
		LIST_FOREACH(q, &r->gone, engine_link)
	r->groups = mcast_forget(r->client->engine, q, r->groups);
	return true;
}

static void withdraw_context(struct reclaim *r, void *object)
{
	context_withdraw(object);
}

static bool withdraw_contexts(struct reclaim *r)
{
	return each_object(r, OBJECT_CONTEXT, withdraw_context);
}

static bool wait_for_lcores(struct reclaim *r)
{
	engine_grace_period(r->client->engine);
	mcast_free(r->client->engine, r->groups);
	r->groups = NULL;
	return true;
}

static bool free_qps(struct reclaim *r)
{
	struct engine_qp *q;

	for (uint32_t n = 0; n < LIMIT_RECLAIM && (q = LIST_FIRST(&r->gone)) != NULL; n++)
		qp_free(r->client, q);
	return LIST_EMPTY(&r->gone);
}

static bool free_ahs(struct reclaim *r)
{
	struct engine_ah *ah;

	for (uint32_t n = 0; n < LIMIT_RECLAIM && (ah = LIST_FIRST(&r->gone_ahs)) != NULL; n++) {
		LIST_REMOVE(ah, engine_link);
		ah_free(r->client, ah);
	}
	return LIST_EMPTY(&r->gone_ahs);
}

/* ---- release ---- */

#define FREE(kind, KIND)                                           \
	static void free_##kind(struct reclaim *r, void *object)   \
	{                                                          \
		kind##_free(r->client, object);                    \
	}                                                          \
	static bool free_each_##kind(struct reclaim *r)            \
	{                                                          \
		return each_object(r, OBJECT_##KIND, free_##kind); \
	}

FREE(srq, SRQ)
FREE(xrcd, XRCD)
FREE(cq, CQ)
FREE(mw, MW)
FREE(mr, MR)
FREE(mr_import, MR_IMPORT)
FREE(dm, DM)
FREE(pd, PD)
FREE(channel, CHANNEL)
FREE(context, CONTEXT)

/* ---- the order ---- */

typedef bool stage(struct reclaim *r); /* true: continue with the next one */

static stage *const withdrawal[] = {
	end_cm_ids,	   end_cm_channels, end_raw,	  detach_qps,
	finish_operations, leave_targets,   withdraw_ahs, withdraw_mws,
	withdraw_mrs,	   withdraw_srqs,   leave_groups, withdraw_contexts,
	wait_for_lcores,   free_qps,	    free_ahs,	  NULL,
};

static stage *const release[] = {
	free_each_srq,	   free_each_xrcd,	free_each_cq, free_each_mw,
	free_each_mr,	   free_each_mr_import, free_each_dm, free_each_pd,
	free_each_channel, free_each_context,	NULL,
};

static bool go_on(struct reclaim *r, stage *const *stages, nanotime until)
{
	while (stages[r->stage] != NULL) {
		if (r->handle == 0)
			r->handle = 1;
		if (stages[r->stage](r)) {
			r->stage++;
			r->handle = r->lcore = 0;
		}
		if (clock_now() >= until && stages[r->stage] != NULL)
			return false;
	}
	r->stage = 0;
	return true;
}

bool reclaim_withdraw(struct reclaim *r, nanotime until)
{
	return go_on(r, withdrawal, until);
}

bool reclaim_release(struct reclaim *r, nanotime until)
{
	return go_on(r, release, until);
}
