/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues: a ring and a page in the client's arena, and a number in the engine.
 *
 * Atomics: lcores take from a list of rings and look at the limit while both change here. Each use
 * below says what it pairs with; counters are read relaxed, after a grace period where they must be
 * exact.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "control/control.h"
#include "lcore/srq.h"
#include "control/commands/tag_control.h"
#include "lcore/xrc.h"

/* ---- numbers ---- */

int srq_numbers_init(struct engine *e)
{
	int error = handle_table_init(&e->control->srq_numbers, LIMIT_ENGINE_SRQS);

	e->srq = (struct engine_srq **)e->control->srq_numbers.slot;
	return error;
}

/* The low half is the table's index. The rest prevents a stale number from finding the next SRQ. */
static uint32_t number_reserve(struct engine *e)
{
	uint32_t index = handle_reserve(&e->control->srq_numbers);

	static_assert(LIMIT_ENGINE_SRQS <= 0xffff, "the index is 16 bits of a number's 24");
	return index != 0 ? (e->control->srq_generation++ & 0xff) << 16 | index : 0;
}

/* ---- rings ---- */

/* A ring for that many requests (one slot of a ring stays free), to follow the newest. */
static int store_create(struct call *call, struct engine_srq *s, uint32_t requests,
			struct srq_store **out)
{
	uint32_t size = power_of_two_above(requests + 1);
	struct arena *a = s->client->arena;
	struct srq_store *store = calloc(1, sizeof(*store));
	int error;

	if (store == NULL)
		return ENOMEM;
	store->octets = ring_bytes(size, s->stride);
	error = queues_take(call, store->octets, &store->offset);
	if (error != 0) {
		free(store);
		return error;
	}
	ring_format(arena_at(a, store->offset), size, false);
	srq_ring_init(&store->ring, arena_at(a, store->offset), size, s->stride);
	store->ring.one_lcore = s->client->engine->lcores == 1;
	TAILQ_INSERT_TAIL(&s->store, store, link);
	s->stores++;
	*out = store;
	return 0;
}

static void store_free(struct engine_srq *s, struct srq_store *store)
{
	TAILQ_REMOVE(&s->store, store, link);
	s->stores--;
	queues_give(s->client, store->offset, store->octets);
	free(store);
}

/*
 * Frees rings that lcores no longer use. Acquire: pairs with the lcore that moved on to the next
 * ring.
 */
static void stores_trim(struct engine_srq *s)
{
	struct srq_ring *oldest = __atomic_load_n(&s->ring, __ATOMIC_ACQUIRE);

	if (&TAILQ_FIRST(&s->store)->ring == oldest)
		return;
	engine_grace_period(s->client->engine);
	while (&TAILQ_FIRST(&s->store)->ring != oldest)
		store_free(s, TAILQ_FIRST(&s->store));
}

/* ---- creation ---- */

static int check_create(struct call *call, const struct request_create_srq *r)
{
	const struct pd *p = object_find(call->client, OBJECT_PD, r->pd);

	if (p == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	if (r->type > SRQ_TYPE_TM)
		return call_fail(call, EOPNOTSUPP,
				 "shared receive queues of type %u are not supported", r->type);
	if (r->type == SRQ_TYPE_XRC &&
	    object_of_context(call->client, OBJECT_XRCD, r->xrcd, p->context) == NULL)
		return call_fail(call, EINVAL, "no such XRC domain in this context");
	if (r->type != SRQ_TYPE_BASIC &&
	    object_of_context(call->client, OBJECT_CQ, r->cq, p->context) == NULL)
		return call_fail(call, EINVAL, "no such completion queue in this context");
	if (r->max_wr == 0 || r->max_wr > LIMIT_QP_WR)
		return call_fail(call, EINVAL, "max_wr %u must be 1 .. %u", r->max_wr, LIMIT_QP_WR);
	if (r->max_sge > LIMIT_SGE)
		return call_fail(call, EINVAL, "max_sge %u exceeds %u", r->max_sge, LIMIT_SGE);
	if (r->limit > r->max_wr)
		return call_fail(call, EINVAL, "srq_limit %u exceeds max_wr %u", r->limit,
				 r->max_wr);
	return r->type == SRQ_TYPE_TM ? tags_check(call, r) : 0;
}

/* Makes the slots into which lcores put back requests that a packet did not use. */
static bool make_back(struct engine_srq *s)
{
	uint32_t places = 2 * s->client->engine->lcores;
	size_t head = round_up(places * sizeof(*s->back), 64);

	s->memory = aligned_alloc(64, head + (size_t)places * s->stride);
	if (s->memory == NULL)
		return false;
	memset(s->memory, 0, head + (size_t)places * s->stride);
	s->back = s->memory;
	for (uint32_t i = 0; i < places; i++)
		s->back[i].work = (struct recv_work *)(void *)((uint8_t *)s->memory + head +
							       (size_t)i * s->stride);
	return true;
}

static int srq_build(struct call *call, struct engine_srq *s, const struct request_create_srq *r)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_SRQ];
	struct srq_store *first;
	int error;

	s->handle = handle_reserve(t);
	if (s->handle == 0)
		return call_no_handle(call, OBJECT_SRQ);
	s->number = number_reserve(call->engine);
	if (s->number == 0)
		return call_fail(call, ENOMEM,
				 "the engine's limit is reached: %u shared receive queues",
				 LIMIT_ENGINE_SRQS);
	error = queues_take(call, sizeof(struct srq_page), &s->page_offset);
	if (error == 0)
		error = store_create(call, s, s->max_wr, &first);
	if (error != 0)
		return error;
	s->page = arena_at(s->client->arena, s->page_offset);
	s->ring = &first->ring;
	if (!make_back(s))
		return ENOMEM;
	return s->type == SRQ_TYPE_TM ? tags_build(call, s, r) : 0;
}

static void srq_unbuild(struct client *c, struct engine_srq *s)
{
	tags_unbuild(c, s);
	while (!TAILQ_EMPTY(&s->store))
		store_free(s, TAILQ_FIRST(&s->store));
	queues_give(c, s->page_offset, sizeof(struct srq_page));
	if (s->number != 0)
		handle_free(&c->engine->control->srq_numbers, s->number & 0xffff);
	if (s->handle != 0)
		handle_free(&c->objects->table[OBJECT_SRQ], s->handle);
	free(s->memory);
	free(s);
}

static void srq_enter(struct call *call, struct engine_srq *s)
{
	struct pd *p = object_find(call->client, OBJECT_PD, s->pd);

	p->users++;
	if (s->xrcd_handle != NULL)
		s->xrcd_handle->users++;
	if (s->cq != NULL)
		s->cq->users++;
	handle_publish(&call->client->objects->table[OBJECT_SRQ], s->handle, s);
	handle_publish(&call->engine->control->srq_numbers, s->number & 0xffff, s);
}

static void describe_srq(const struct engine_srq *s, struct reply_create_srq *reply)
{
	const struct srq_store *store = TAILQ_FIRST(&s->store);

	reply->handle = s->handle;
	reply->srqn = s->number;
	reply->max_wr = s->max_wr;
	reply->max_sge = s->max_sge;
	reply->ring_size = store->ring.size;
	reply->stride = s->stride;
	reply->ring_offset = store->offset;
	reply->page_offset = s->page_offset;
	if (s->tags != NULL)
		tags_describe(s, reply);
}

static void fill_srq(struct call *call, struct engine_srq *s, const struct request_create_srq *r)
{
	const struct pd *p = object_find(call->client, OBJECT_PD, r->pd);
	const struct context *x = object_find(call->client, OBJECT_CONTEXT, p->context);

	TAILQ_INIT(&s->store);
	s->client = call->client;
	s->cookie = r->cookie;
	s->type = r->type;
	s->context = p->context;
	s->async_fd = x->async_fd;
	s->pd = r->pd;
	s->pd_number = p->number;
	s->max_wr = r->max_wr;
	s->max_sge = r->max_sge;
	s->limit = r->limit;
	if (r->type == SRQ_TYPE_XRC) {
		s->xrcd_handle = object_find(call->client, OBJECT_XRCD, r->xrcd);
		s->xrcd = s->xrcd_handle->domain;
	}
	if (r->type != SRQ_TYPE_BASIC)
		s->cq = object_find(call->client, OBJECT_CQ, r->cq);
	s->stride = recv_work_stride(r->max_sge);
}

int cmd_create_srq(struct call *call)
{
	const struct request_create_srq *r = (const struct request_create_srq *)call->request;
	int error = check_create(call, r);
	struct engine_srq *s;

	if (error != 0)
		return error;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return ENOMEM;
	fill_srq(call, s, r);
	error = srq_build(call, s, r);
	if (error != 0) {
		srq_unbuild(call->client, s);
		return error;
	}
	srq_enter(call, s);
	describe_srq(s, (struct reply_create_srq *)&call->reply);
	return 0;
}

/* ---- changes ---- */

static int check_modify(struct call *call, struct engine_srq *s, const struct request_modify_srq *r)
{
	uint32_t max_wr = r->mask & SRQ_ATTR_MAX_WR ? r->max_wr : s->max_wr;
	uint32_t waiting = srq_waiting(s);

	if (r->mask & ~(uint32_t)(SRQ_ATTR_MAX_WR | SRQ_ATTR_LIMIT))
		return call_fail(call, EINVAL, "invalid attribute mask %#x", r->mask);
	if (max_wr == 0 || max_wr > LIMIT_QP_WR)
		return call_fail(call, EINVAL, "max_wr %u must be 1 .. %u", max_wr, LIMIT_QP_WR);
	if ((r->mask & SRQ_ATTR_MAX_WR) && waiting > max_wr)
		return call_fail(call, EINVAL, "max_wr %u is too small: %u requests are posted",
				 max_wr, waiting);
	if ((r->mask & SRQ_ATTR_LIMIT) && r->limit > max_wr)
		return call_fail(call, EINVAL, "srq_limit %u exceeds max_wr %u", r->limit, max_wr);
	return 0;
}

/*
 * From now on the program posts into the new ring (its library holds the lock meanwhile). Lcores
 * continue with the old ring until it is empty. Nothing is moved and no thread waits.
 */
static int resize(struct call *call, struct engine_srq *s, uint32_t max_wr)
{
	struct reply_modify_srq *reply = (struct reply_modify_srq *)&call->reply;
	struct srq_store *newest, *store;
	int error;

	stores_trim(s);
	if (s->stores == LIMIT_SRQ_RINGS)
		return call_fail(
			call, ENOMEM,
			"requests that were posted before the last %u resizes are still in use",
			LIMIT_SRQ_RINGS - 1);
	newest = TAILQ_LAST(&s->store, srq_store_list);
	error = store_create(call, s, max_wr, &store);
	if (error != 0)
		return error;
	/* Release: an lcore that finds the ring finds it initialised. */
	__atomic_store_n(&newest->ring.next, &store->ring, __ATOMIC_RELEASE);
	s->max_wr = max_wr;
	reply->ring_size = store->ring.size;
	reply->ring_offset = store->offset;
	return 0;
}

int cmd_modify_srq(struct call *call)
{
	const struct request_modify_srq *r = (const struct request_modify_srq *)call->request;
	struct engine_srq *s = object_find(call->client, OBJECT_SRQ, r->srq);
	int error;

	if (s == NULL)
		return call_fail(call, EINVAL, "no such shared receive queue");
	error = check_modify(call, s, r);
	if (error == 0 && (r->mask & SRQ_ATTR_MAX_WR) && r->max_wr != s->max_wr)
		error = resize(call, s, r->max_wr);
	if (error != 0)
		return error;
	if (r->mask & SRQ_ATTR_LIMIT) {
		/*
		 * Sequentially consistent: either the lcore sees the limit, or this thread sees
		 * what the lcore took.
		 */
		__atomic_store_n(&s->limit, r->limit, __ATOMIC_SEQ_CST);
		srq_look_at_limit(s);
	}
	((struct reply_modify_srq *)&call->reply)->max_wr = s->max_wr;
	return 0;
}

int cmd_query_srq(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_query_srq *reply = (struct reply_query_srq *)&call->reply;
	const struct engine_srq *s = object_find(call->client, OBJECT_SRQ, r->handle);

	if (s == NULL)
		return call_fail(call, EINVAL, "no such shared receive queue");
	reply->max_wr = s->max_wr;
	reply->max_sge = s->max_sge;
	reply->limit = __atomic_load_n(&s->limit, __ATOMIC_RELAXED);
	return 0;
}

/* ---- the end ---- */

void srq_withdraw(struct client *c, struct engine_srq *s)
{
	handle_withdraw(&c->engine->control->srq_numbers, s->number & 0xffff);
}

void srq_free(struct client *c, struct engine_srq *s)
{
	struct pd *p = object_find(c, OBJECT_PD, s->pd);

	handle_withdraw(&c->objects->table[OBJECT_SRQ], s->handle);
	p->users--;
	if (s->xrcd_handle != NULL)
		s->xrcd_handle->users--;
	if (s->cq != NULL)
		s->cq->users--;
	srq_unbuild(c, s);
}

int cmd_destroy_srq(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_destroy *reply = (struct reply_destroy *)&call->reply;
	struct engine_srq *s = object_find(call->client, OBJECT_SRQ, r->handle);

	if (s == NULL)
		return call_fail(call, EINVAL, "no such shared receive queue");
	if (s->users != 0)
		return call_fail(call, EBUSY, "%u queue pairs use the shared receive queue",
				 s->users);
	srq_withdraw(call->client, s);
	engine_grace_period(call->engine);
	reply->events = __atomic_load_n(&s->async_events, __ATOMIC_RELAXED);
	srq_free(call->client, s);
	return 0;
}
