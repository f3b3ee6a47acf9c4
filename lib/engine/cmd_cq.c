/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: a ring and a page in the client's arena. */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "engine/control.h"

static int check_cq(struct call *call, const struct request_create_cq *r)
{
	const struct engine_channel *ch;

	if (object_find(call->client, OBJECT_CONTEXT, r->context) == NULL)
		return call_fail(call, EINVAL, "no such context");
	ch = object_find(call->client, OBJECT_CHANNEL, r->channel);
	if (r->channel != 0 && (ch == NULL || ch->context != r->context))
		return call_fail(call, EINVAL, "no such completion channel in this context");
	if (r->cqe == 0 || r->cqe > LIMIT_CQE)
		return call_fail(call, EINVAL, "cqe %u is not 1 .. %u", r->cqe, LIMIT_CQE);
	if (r->comp_vector >= LIMIT_COMP_VECTORS)
		return call_fail(call, EINVAL, "comp_vector %u is not 0 .. %u", r->comp_vector,
				 LIMIT_COMP_VECTORS - 1);
	if (call->engine->cq_count >= LIMIT_CQS)
		return call_fail(call, ENOMEM, "the engine has %u completion queues, all it can",
				 LIMIT_CQS);
	return 0;
}

/* The ring and the page. One slot of a ring stays free. */
static bool make_ring(struct engine_cq *cq, uint32_t cqe)
{
	struct arena *a = cq->client->arena;
	uint32_t size = power_of_two_above(cqe + 1);

	cq->ring_octets = ring_bytes(size, sizeof(struct completion));
	cq->ring_offset = arena_allocate(a, cq->ring_octets);
	cq->page_offset = arena_allocate(a, sizeof(struct cq_page));
	if (cq->ring_offset == 0 || cq->page_offset == 0)
		return false;
	ring_format(arena_at(a, cq->ring_offset), size, false);
	cq_ring_init(&cq->ring, arena_at(a, cq->ring_offset), arena_at(a, cq->page_offset), size,
		     size - 1);
	cq->ring.one_lcore = cq->client->engine->lcores == 1;
	return true;
}

static void free_ring(struct engine_cq *cq)
{
	if (cq->ring_offset != 0)
		arena_free(cq->client->arena, cq->ring_offset, cq->ring_octets);
	if (cq->page_offset != 0)
		arena_free(cq->client->arena, cq->page_offset, sizeof(struct cq_page));
}

static void describe_cq(const struct engine_cq *cq, struct reply_create_cq *reply)
{
	reply->handle = cq->handle;
	reply->cqe = cq->ring.capacity;
	reply->ring_size = cq->ring.size;
	reply->ring_offset = cq->ring_offset;
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
	cq->context = r->context;
	cq->async_fd = x->async_fd;
	cq->handle = handle_reserve(t);
	if (cq->handle == 0 || !make_ring(cq, r->cqe)) {
		error = call_fail(call, ENOMEM,
				  cq->handle == 0 ? "too many completion queues of one program"
						  : "the program's queues fill its arena");
		if (cq->handle != 0)
			handle_free(t, cq->handle);
		free_ring(cq);
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

int cmd_resize_cq(struct call *call)
{
	const struct request_resize_cq *r = (const struct request_resize_cq *)call->request;

	if (object_find(call->client, OBJECT_CQ, r->cq) == NULL)
		return call_fail(call, EINVAL, "no such completion queue");
	return call_fail(call, EOPNOTSUPP, "completion queues keep their size");
}

void cq_free(struct client *c, struct engine_cq *cq)
{
	struct handle_table *t = &c->objects->table[OBJECT_CQ];

	handle_withdraw(t, cq->handle);
	handle_free(t, cq->handle);
	if (cq->channel != NULL)
		cq->channel->users--;
	c->engine->cq_count--;
	free_ring(cq);
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
		return call_fail(call, EBUSY, "%u queue pairs complete into it", cq->users);
	/* Its last queue pair left after a grace period: no lcore knows it any more. */
	reply->events = __atomic_load_n(&cq->events, __ATOMIC_RELAXED);
	cq_free(call->client, cq);
	return 0;
}
