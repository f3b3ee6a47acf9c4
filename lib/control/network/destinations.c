/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/network/destinations.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"

#define ROUNDS_EVERY (LIMIT_FLIP_MS * TIME_MS)

TAILQ_HEAD(destination_list, destination);

enum look {
	LOOK_WAITING, /* address resolution is under way */
	LOOK_UNREACHABLE,
	LOOK_ANSWERED,
	LOOKS_KINDS,
};

/*
 * In `qps` and `ahs`, users with the present version stand behind the others. In a look list,
 * destinations that were looked at in this round stand behind the others.
 */
struct destination {
	struct destinations *all;
	struct gid gid;
	struct gid from; /* the own address, if the way depends on it; otherwise zero */
	struct mac mac;
	uint8_t state; /* enum flow_state */
	bool is_late; /* in destinations.late */
	uint8_t kind; /* enum look: the list that the destination is in */
	uint32_t version; /* of the answer; users compare it with theirs */
	uint32_t round; /* the round in which it was looked up last */
	uint32_t users;
	uint32_t serial;
	uint64_t looks, changes; /* lookups, and how many of them had a different answer */
	TAILQ_HEAD(, engine_qp) qps;
	TAILQ_HEAD(, engine_ah) ahs;
	LIST_ENTRY(destination) bucket_link;
	TAILQ_ENTRY(destination) look_link;
	TAILQ_ENTRY(destination) late_link;
};

struct new_flow {
	struct engine_qp *qp;
	enum flow_state state;
	struct flow flow;
};

struct destinations {
	uint64_t seed;
	uint32_t serial; /* of the last destination */
	uint32_t round;
	bool news; /* another round is needed */
	bool stale; /* ... in which all users are told */
	bool starved; /* this slice had no memory for a new handle */
	nanotime round_at; /* when it may begin */
	struct destination_list list[LOOKS_KINDS], late;
	struct destination *spare; /* made for a user that did not come */
	LIST_HEAD(, destination) bucket[LIMIT_DESTINATION_BUCKETS];
	uint32_t flows;
	struct new_flow flow[LIMIT_FLIP_QPS];
};

struct destinations *destinations_new(void)
{
	struct destinations *ds = calloc(1, sizeof(*ds));

	if (ds == NULL)
		return NULL;
	arc4random_buf(&ds->seed, sizeof(ds->seed));
	for (int kind = 0; kind < LOOKS_KINDS; kind++)
		TAILQ_INIT(&ds->list[kind]);
	TAILQ_INIT(&ds->late);
	return ds;
}

static struct destinations *of_engine(const struct engine *e)
{
	return e->control->destinations;
}

static uint32_t bucket_of(const struct destinations *ds, const struct gid *gid)
{
	uint64_t half[2], h;

	memcpy(half, gid->octet, sizeof(half));
	h = (half[0] ^ ds->seed) * UINT64_C(0x9e3779b97f4a7c15);
	h = ((h ^ h >> 29) ^ half[1]) * UINT64_C(0x9e3779b97f4a7c15);
	return h >> 40 & (LIMIT_DESTINATION_BUCKETS - 1);
}

static struct gid source_of(const struct engine *e, const struct qp_path *path)
{
	const struct gid any = { { 0 } };

	return e->port != NULL && e->port->kernel_answers ? path->sgid : any;
}

static struct destination *find(const struct engine *e, const struct qp_path *path)
{
	struct destinations *ds = of_engine(e);
	struct gid from = source_of(e, path);
	struct destination *d;

	if (ds == NULL)
		return NULL;
	LIST_FOREACH(d, &ds->bucket[bucket_of(ds, &path->dgid)], bucket_link)
	if (gid_equal(&d->gid, &path->dgid) && gid_equal(&d->from, &from))
		return d;
	return NULL;
}

static enum look kind_of(enum flow_state state)
{
	if (state == FLOW_NONE)
		return LOOK_WAITING;
	return state == FLOW_UNREACHABLE ? LOOK_UNREACHABLE : LOOK_ANSWERED;
}

static void forget(struct destinations *ds, struct destination *d)
{
	if (d->is_late)
		TAILQ_REMOVE(&ds->late, d, late_link);
	TAILQ_REMOVE(&ds->list[d->kind], d, look_link);
	LIST_REMOVE(d, bucket_link);
	if (ds->spare == d)
		ds->spare = NULL;
	free(d);
}

void destinations_free(struct destinations *ds)
{
	if (ds == NULL)
		return;
	for (int kind = 0; kind < LOOKS_KINDS; kind++)
		while (!TAILQ_EMPTY(&ds->list[kind]))
			forget(ds, TAILQ_FIRST(&ds->list[kind]));
	free(ds);
}

static void make_late(struct destinations *ds, struct destination *d)
{
	d->version++;
	if (!d->is_late)
		TAILQ_INSERT_TAIL(&ds->late, d, late_link);
	d->is_late = true;
}

/*
 * Looks up the way again. If it changed, the destination is late. It goes to the end of its list.
 */
static void look(struct engine *e, struct destination *d)
{
	struct destinations *ds = of_engine(e);
	struct mac mac = { { 0 } };
	enum flow_state state = flow_resolve(e, &d->from, &d->gid, &mac);

	d->looks++;
	if (state != d->state || memcmp(&mac, &d->mac, sizeof(mac)) != 0) {
		d->changes++;
		make_late(ds, d);
	}
	TAILQ_REMOVE(&ds->list[d->kind], d, look_link);
	d->state = (uint8_t)state;
	d->mac = mac;
	d->round = ds->round;
	d->kind = (uint8_t)kind_of(state);
	TAILQ_INSERT_TAIL(&ds->list[d->kind], d, look_link);
}

static struct destination *make(const struct engine *e, const struct qp_path *path)
{
	struct destinations *ds = of_engine(e);
	struct destination *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->all = ds;
	d->gid = path->dgid;
	d->from = source_of(e, path);
	d->round = ds->round;
	d->serial = ++ds->serial;
	TAILQ_INIT(&d->qps);
	TAILQ_INIT(&d->ahs);
	TAILQ_INSERT_TAIL(&ds->list[d->kind], d, look_link);
	LIST_INSERT_HEAD(&ds->bucket[bucket_of(ds, &d->gid)], d, bucket_link);
	return d;
}

static void forget_spare(struct destinations *ds)
{
	if (ds->spare != NULL && ds->spare->users == 0)
		forget(ds, ds->spare);
	ds->spare = NULL;
}

int destination_find_way(struct engine *e, const struct qp_path *path, enum flow_state *state,
			 struct mac *mac)
{
	struct destinations *ds = of_engine(e);
	struct destination *d;

	if (ds == NULL) {
		*state = flow_resolve(e, &path->sgid, &path->dgid, mac);
		return 0;
	}
	forget_spare(ds);
	d = find(e, path);
	if (d == NULL) {
		d = make(e, path);
		ds->spare = d;
	}
	if (d == NULL)
		return ENOMEM;
	look(e, d);
	*state = d->state;
	*mac = d->mac;
	return 0;
}

/* ---- users ---- */

static void leave(struct destination *d)
{
	if (--d->users == 0)
		forget(d->all, d);
}

void destination_of_qp(struct engine *e, struct engine_qp *q, const struct qp_path *path)
{
	struct destination *d = find(e, path);

	if (d == NULL)
		return;
	d->users++;
	destination_leave_qp(q);
	q->destination = d;
	q->destination_version = d->version;
	TAILQ_INSERT_TAIL(&d->qps, q, destination_link);
}

void destination_leave_qp(struct engine_qp *q)
{
	struct destination *d = q->destination;

	if (d == NULL)
		return;
	TAILQ_REMOVE(&d->qps, q, destination_link);
	q->destination = NULL;
	leave(d);
}

void destination_of_ah(struct engine *e, struct engine_ah *ah)
{
	struct destination *d = find(e, &ah->path);

	if (d == NULL)
		return;
	d->users++;
	ah->destination = d;
	ah->destination_version = d->version;
	TAILQ_INSERT_TAIL(&d->ahs, ah, destination_link);
}

void destination_leave_ah(struct engine_ah *ah)
{
	struct destination *d = ah->destination;

	if (d == NULL)
		return;
	TAILQ_REMOVE(&d->ahs, ah, destination_link);
	ah->destination = NULL;
	leave(d);
}

/* ---- telling the users ---- */

static void set_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	const struct destinations *ds = arg;

	for (uint32_t i = 0; i < ds->flows; i++) {
		const struct new_flow *n = &ds->flow[i];

		if (n->qp->lcore != l || n->qp->detached)
			continue;
		n->qp->flow = n->flow;
		n->qp->flow_state = (uint8_t)n->state;
		lcore_qp_touch(l, n->qp, now);
	}
}

/* Sends one message to each lcore that has some of the queue pairs. */
static void tell_lcores(struct engine *e, struct destinations *ds)
{
	uint32_t lcores = 0;

	for (uint32_t i = 0; i < ds->flows; i++)
		lcores |= 1u << ds->flow[i].qp->lcore->index;
	for (uint32_t i = 0; i < e->lcores; i++)
		if (lcores >> i & 1)
			lcore_call(&e->lcore[i], set_on_lcore, ds);
	ds->flows = 0;
}

/* False: there are more. */
static bool tell_qps(struct engine *e, struct destinations *ds, struct destination *d)
{
	struct engine_qp *q;

	while ((q = TAILQ_FIRST(&d->qps)) != NULL && q->destination_version != d->version) {
		struct new_flow *n = &ds->flow[ds->flows];

		if (ds->flows == LIMIT_FLIP_QPS)
			return false;
		ds->flows++;
		n->qp = q;
		n->state = (enum flow_state)d->state;
		flow_make_of(e, q, qp_address_vector(q->core), q->peer_qpn, &d->mac, &n->flow);
		q->destination_version = d->version;
		TAILQ_REMOVE(&d->qps, q, destination_link);
		TAILQ_INSERT_TAIL(&d->qps, q, destination_link);
	}
	return true;
}

LIST_HEAD(ah_list, engine_ah);

/* Replaces this handle by another one. Lcores may still read the old one for a moment. */
static void replace_ah(struct engine_ah *ah, struct engine_ah *fresh, struct ah_list *old)
{
	struct destination *d = ah->destination;

	LIST_INSERT_BEFORE(ah, fresh, engine_link);
	LIST_REMOVE(ah, engine_link);
	TAILQ_REMOVE(&d->ahs, ah, destination_link);
	LIST_INSERT_HEAD(old, ah, engine_link);
	TAILQ_INSERT_TAIL(&d->ahs, fresh, destination_link);
	handle_publish(&ah->client->objects->table[OBJECT_AH], ah->handle, fresh);
}

/* Replaces some handles, with one grace period. False: there are more, or no memory. */
static bool tell_ahs(struct engine *e, struct destination *d)
{
	struct ah_list old = LIST_HEAD_INITIALIZER(old);
	struct engine_ah *ah, *fresh;
	uint32_t n = 0;

	while ((ah = TAILQ_FIRST(&d->ahs)) != NULL && ah->destination_version != d->version &&
	       n < LIMIT_FLIP_AHS) {
		fresh = ah_renew(e, ah, (enum flow_state)d->state, &d->mac);
		d->all->starved = fresh == NULL;
		if (fresh == NULL)
			break;
		fresh->destination_version = d->version;
		replace_ah(ah, fresh, &old);
		n++;
	}
	if (LIST_EMPTY(&old))
		return ah == NULL || ah->destination_version == d->version;
	engine_grace_period(e);
	while ((ah = LIST_FIRST(&old)) != NULL) {
		LIST_REMOVE(ah, engine_link);
		free(ah);
	}
	ah = TAILQ_FIRST(&d->ahs);
	return ah == NULL || ah->destination_version == d->version;
}

/* False: there are more. */
static bool tell_some(struct engine *e, struct destinations *ds)
{
	struct destination *d;
	bool all = true;

	while (all && (d = TAILQ_FIRST(&ds->late)) != NULL) {
		all = tell_qps(e, ds, d);
		if (ds->flows > 0)
			tell_lcores(e, ds);
		all = all && tell_ahs(e, d);
		TAILQ_REMOVE(&ds->late, d, late_link);
		if (all)
			d->is_late = false;
		else /* the other destinations come before the rest of this one */
			TAILQ_INSERT_TAIL(&ds->late, d, late_link);
	}
	return all;
}

/* ---- looking up ---- */

void destinations_news(struct destinations *ds)
{
	ds->news = true;
}

void destinations_stale(struct destinations *ds)
{
	ds->news = true;
	ds->stale = true;
	ds->round_at = 0;
}

static void make_all_late(struct destinations *ds)
{
	struct destination *d;

	for (int kind = 0; kind < LOOKS_KINDS; kind++)
		TAILQ_FOREACH(d, &ds->list[kind], look_link)
	make_late(ds, d);
	ds->stale = false;
}

/*
 * Looks at answered destinations that this round has not reached, up to the limit of a slice.
 * False: there are more.
 */
static bool look_again(struct engine *e)
{
	struct destinations *ds = of_engine(e);
	struct destination *d;

	for (uint32_t n = 0; n <= LIMIT_FLIP_LOOKS; n++) {
		d = TAILQ_FIRST(&ds->list[LOOK_ANSWERED]);
		if (d == NULL || d->round == ds->round)
			return true;
		if (n < LIMIT_FLIP_LOOKS)
			look(e, d);
	}
	return false;
}

/*
 * Looks at each destination of a kind once, up to the limit of a slice. The rest comes next time.
 */
static void look_around(struct engine *e, enum look kind)
{
	struct destination_list *list = &of_engine(e)->list[kind];
	struct destination *d, *last = TAILQ_LAST(list, destination_list);

	for (uint32_t n = 0; n < LIMIT_FLIP_LOOKS && (d = TAILQ_FIRST(list)) != NULL; n++) {
		look(e, d);
		if (d == last)
			break;
	}
}

static void begin_round(struct destinations *ds, nanotime now)
{
	ds->news = false;
	ds->round++;
	ds->round_at = now + ROUNDS_EVERY;
	if (ds->stale)
		make_all_late(ds);
}

bool destinations_waiting(const struct destinations *ds)
{
	return !TAILQ_EMPTY(&ds->list[LOOK_WAITING]);
}

bool destinations_unreachable(const struct destinations *ds)
{
	return !TAILQ_EMPTY(&ds->list[LOOK_UNREACHABLE]);
}

nanotime destinations_slice(struct engine *e, bool waiting, bool unreachable, nanotime now)
{
	struct destinations *ds = of_engine(e);
	bool all;

	ds->starved = false;
	if (waiting)
		look_around(e, LOOK_WAITING);
	if (unreachable)
		look_around(e, LOOK_UNREACHABLE);
	all = look_again(e);
	if (all && ds->news && now >= ds->round_at) {
		begin_round(ds, now);
		all = look_again(e);
	}
	all &= tell_some(e, ds);
	if (!all)
		return ds->starved ? now + ROUNDS_EVERY : now;
	return ds->news ? ds->round_at : TIME_NEVER;
}

/* ---- for lists ---- */

static void describe(const struct destination *d, struct listed_neighbour *to)
{
	to->gid = d->gid;
	to->from = d->from;
	to->users = d->users;
	to->serial = d->serial;
	to->looks = d->looks;
	to->changes = d->changes;
	to->way = d->state == FLOW_PORT	  ? LISTED_PORT
		  : d->state == FLOW_NONE ? LISTED_NOWHERE
					  : LISTED_UNREACHABLE;
	if (d->state == FLOW_PORT)
		memcpy(to->mac, d->mac.octet, sizeof(to->mac));
}

/* A position is a bucket, and how many of its entries were listed. */
uint64_t destinations_list(const struct destinations *ds, uint64_t from,
			   struct listed_neighbour *to, uint32_t room, uint32_t *count)
{
	uint32_t skip = (uint32_t)from;

	*count = 0;
	for (uint64_t b = from >> 32; b < LIMIT_DESTINATION_BUCKETS; b++, skip = 0) {
		const struct destination *d;
		uint32_t at = 0;

		LIST_FOREACH(d, &ds->bucket[b], bucket_link)
		{
			if (at++ < skip || d->users == 0 || d->state == FLOW_LOOP)
				continue;
			if (*count == room)
				return b << 32 | (at - 1);
			describe(d, &to[(*count)++]);
		}
	}
	return 0;
}
