/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: a ring and a page in the client's arena.
 *
 * Atomics: `events` counts what lcores sent and is read after the last grace period.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "control/control.h"

static int check_cq(struct call *call, const struct request_create_cq *r)
{
	const struct engine_channel *ch;

	if (object_find(call->client, OBJECT_CONTEXT, r->context) == NULL)
		return call_fail(call, EINVAL, "no such context");
	ch = object_find(call->client, OBJECT_CHANNEL, r->channel);
	if (r->channel != 0 && (ch == NULL || ch->context != r->context))
		return call_fail(call, EINVAL, "no such completion channel in this context");
	if (r->cqe == 0 || r->cqe > LIMIT_CQE)
		return call_fail(call, EINVAL, "cqe %u must be 1 .. %u", r->cqe, LIMIT_CQE);
	if (r->comp_vector >= LIMIT_COMP_VECTORS)
		return call_fail(call, EINVAL, "comp_vector %u must be 0 .. %u", r->comp_vector,
				 LIMIT_COMP_VECTORS - 1);
	if (r->flags & ~(uint32_t)CQ_FLAG_IGNORE_OVERRUN)
		return call_fail(call, EINVAL, "unknown flags for a completion queue");
	return 0;
}

static uint32_t half_index(const struct engine_cq *cq, const struct cq_ring *half)
{
	return (uint32_t)(half - cq->rings.half);
}

/* A ring for `half` that no lcore uses yet. One slot of a ring stays free. */
static int make_ring(struct call *call, struct engine_cq *cq, struct cq_ring *half, uint32_t cqe)
{
	struct arena *a = cq->client->arena;
	uint32_t size = power_of_two_above(cqe + 1), i = half_index(cq, half);
	size_t octets = ring_bytes(size, sizeof(struct completion));
	uint64_t offset;
	int error = queues_take(call, octets, &offset);

	if (error != 0)
		return error;
	cq->memory[i].offset = offset;
	cq->memory[i].octets = octets;
	ring_format(arena_at(a, offset), size, false);
	cq_ring_init(half, arena_at(a, offset), arena_at(a, cq->page_offset), size, size - 1);
	half->one_lcore = cq->client->engine->lcores == 1;
	return 0;
}

static void free_ring(struct engine_cq *cq, const struct cq_ring *half)
{
	uint32_t i = half_index(cq, half);

	queues_give(cq->client, cq->memory[i].offset, cq->memory[i].octets);
	cq->memory[i].offset = 0;
}

static int make_queue(struct call *call, struct engine_cq *cq, uint32_t cqe)
{
	int error = queues_take(call, sizeof(struct cq_page), &cq->page_offset);

	cq->rings.now = &cq->rings.half[0];
	return error != 0 ? error : make_ring(call, cq, cq->rings.now, cqe);
}

static void free_queue(struct engine_cq *cq)
{
	free_ring(cq, &cq->rings.half[0]);
	free_ring(cq, &cq->rings.half[1]);
	queues_give(cq->client, cq->page_offset, sizeof(struct cq_page));
}

static void describe_cq(const struct engine_cq *cq, struct reply_create_cq *reply)
{
	const struct cq_ring *now = cq->rings.now;

	reply->handle = cq->handle;
	reply->cqe = now->capacity;
	reply->ring_size = now->size;
	reply->ring_offset = cq->memory[half_index(cq, now)].offset;
	reply->page_offset = cq->page_offset;
}

int cmd_create_cq(struct call *call)
{
	const struct request_create_cq *r = (const struct request_create_cq *)call->request;
	struct handle_table *t = &call->client->objects->table[OBJECT_CQ];
	struct engine_cq *cq;
	struct context *x;
	int error = check_cq(call, r);

	if (error != 0)
		return error;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return ENOMEM;
	x = object_find(call->client, OBJECT_CONTEXT, r->context);
	cq->client = call->client;
	cq->channel = object_find(call->client, OBJECT_CHANNEL, r->channel);
	cq->cookie = r->cookie;
	cq->ignores_overrun = (r->flags & CQ_FLAG_IGNORE_OVERRUN) != 0;
	cq->context = r->context;
	cq->async_fd = x->async_fd;
	cq->handle = handle_reserve(t);
	error = cq->handle == 0 ? call_no_handle(call, OBJECT_CQ) : make_queue(call, cq, r->cqe);
	if (error != 0) {
		if (cq->handle != 0)
			handle_free(t, cq->handle);
		free_queue(cq);
		free(cq);
		return error;
	}
	if (cq->channel != NULL)
		cq->channel->users++;
	call->engine->cq_count++;
	handle_publish(t, cq->handle, cq);
	describe_cq(cq, (struct reply_create_cq *)&call->reply);
	return 0;
}

/* The program writes the other end's position: anything beyond the size counts as full. */
static uint32_t unpolled(const struct cq_ring *ring)
{
	const struct rte_ring *shared = (const struct rte_ring *)(const void *)ring->shared;

	return cq_ring_unpolled(shared);
}

static int check_resize(struct call *call, const struct request_resize_cq *r,
			const struct engine_cq *cq)
{
	uint32_t held;

	if (cq == NULL)
		return call_fail(call, EINVAL, "no such completion queue");
	if (r->cqe == 0 || r->cqe > LIMIT_CQE)
		return call_fail(call, EINVAL, "cqe %u must be 1 .. %u", r->cqe, LIMIT_CQE);
	/*
	 * Requests that were posted before complete before, as far as possible: an lcore takes a
	 * message before the doorbells of the same round, so the second message follows a whole
	 * round.
	 */
	engine_grace_period(call->engine);
	engine_grace_period(call->engine);
	held = unpolled(cq->rings.now);
	if (held > r->cqe)
		return call_fail(call, EINVAL, "cqe %u, but %u completions are unpolled", r->cqe,
				 held);
	return 0;
}

int cmd_resize_cq(struct call *call)
{
	const struct request_resize_cq *r = (const struct request_resize_cq *)call->request;
	struct reply_create_cq *reply = (struct reply_create_cq *)&call->reply;
	struct engine_cq *cq = object_find(call->client, OBJECT_CQ, r->cq);
	int error = check_resize(call, r, cq);

	if (error != 0)
		return error;
	if (cq->rings.now->size != power_of_two_above(r->cqe + 1)) {
		struct cq_ring *spare = cq_rings_spare(&cq->rings);

		free_ring(cq, spare);
		error = make_ring(call, cq, spare, r->cqe);
		if (error != 0)
			return error;
		cq_rings_switch(&cq->rings);
		/* After this no lcore writes the old ring, and everything in it is visible. */
		engine_grace_period(call->engine);
	}
	describe_cq(cq, reply);
	return 0;
}

int cmd_cq_ring_left(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct engine_cq *cq = object_find(call->client, OBJECT_CQ, r->handle);

	if (cq == NULL)
		return call_fail(call, EINVAL, "no such completion queue");
	free_ring(cq, cq_rings_spare(&cq->rings));
	return 0;
}

int cmd_modify_cq(struct call *call)
{
	const struct request_modify_cq *r = (const struct request_modify_cq *)call->request;
	struct engine_cq *cq = object_find(call->client, OBJECT_CQ, r->cq);

	if (cq == NULL)
		return call_fail(call, EINVAL, "no such completion queue");
	if (r->count > LIMIT_MODERATION || r->period > LIMIT_MODERATION)
		return call_fail(call, EINVAL, "count %u and period %u must be 0 .. %u", r->count,
				 r->period, LIMIT_MODERATION);
	moderate_set(cq, r->count, r->period);
	return 0;
}

/*
 * The CQ was armed after a completion that satisfies it: sends the event, unless an lcore has just
 * done so.
 */
int cmd_wake_cq(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct engine_cq *cq = object_find(call->client, OBJECT_CQ, r->handle);

	if (cq == NULL)
		return call_fail(call, EINVAL, "no such completion queue");
	if (cq->channel != NULL && cq_page_disarm(cq->rings.now->page))
		cq_send_event(cq);
	return 0;
}

void cq_free(struct client *c, struct engine_cq *cq)
{
	struct handle_table *t = &c->objects->table[OBJECT_CQ];

	handle_withdraw(t, cq->handle);
	handle_free(t, cq->handle);
	if (cq->channel != NULL)
		cq->channel->users--;
	c->engine->cq_count--;
	moderate_forget(cq);
	free_queue(cq);
	free(cq);
}

int cmd_destroy_cq(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_destroy *reply = (struct reply_destroy *)&call->reply;
	struct engine_cq *cq = object_find(call->client, OBJECT_CQ, r->handle);

	if (cq == NULL)
		return call_fail(call, EINVAL, "no such completion queue");
	if (cq->users != 0)
		return call_fail(call, EBUSY, "%u queue pairs use the completion queue", cq->users);
	/* Its last queue pair left before a grace period: no lcore uses the CQ any more. */
	reply->events = __atomic_load_n(&cq->events, __ATOMIC_RELAXED);
	cq_free(call->client, cq);
	return 0;
}
