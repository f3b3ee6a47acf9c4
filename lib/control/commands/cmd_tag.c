/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that only a tag matching SRQ has: created and freed with it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "control/control.h"
#include "control/commands/tag_control.h"

int tags_check(struct call *call, const struct request_create_srq *r)
{
	if (r->max_tags == 0 || r->max_tags > LIMIT_TAGS)
		return call_fail(call, EINVAL, "max_num_tags %u must be 1 .. %u", r->max_tags,
				 LIMIT_TAGS);
	if (r->max_ops == 0 || r->max_ops > LIMIT_TAG_OPS)
		return call_fail(call, EINVAL, "max_ops %u must be 1 .. %u", r->max_ops,
				 LIMIT_TAG_OPS);
	return 0;
}

static uint32_t ops_stride(void)
{
	return (uint32_t)round_up(sizeof(struct tag_work) + LIMIT_TAG_SGE * sizeof(struct work_sge),
				  64);
}

static int make_ops(struct call *call, struct engine_srq *s, uint32_t max_ops)
{
	uint32_t size = power_of_two_above(max_ops + 1), stride = ops_stride();
	struct arena *a = s->client->arena;
	struct tag_list *list = s->tags;
	int error;

	list->ops_octets = ring_bytes(size, stride);
	error = queues_take(call, list->ops_octets, &list->ops_offset);
	if (error != 0)
		return error;
	ring_format(arena_at(a, list->ops_offset), size, false);
	ring_side_init(&list->ops, arena_at(a, list->ops_offset), size, stride);
	return 0;
}

/* The list and its parts, in one block of memory. */
static int make_list(struct call *call, struct engine_srq *s, uint32_t max_tags)
{
	struct account *a = &call->client->objects->account;
	size_t entries = round_up(sizeof(struct tag_list), 64);
	size_t matches = entries + max_tags * sizeof(struct tag_entry);
	size_t unused = matches + max_tags * sizeof(struct tag_match);
	size_t octets = round_up(unused + max_tags * sizeof(uint32_t), 64);
	uint8_t *memory;

	if (!account_take_memory(a, octets)) {
		account_explain_memory(a, octets, call->reply.why, sizeof(call->reply.why));
		return ENOMEM;
	}
	memory = aligned_alloc(64, octets);
	if (memory == NULL) {
		account_give_memory(a, octets);
		return call_fail(call, ENOMEM, "the engine has no memory for the tag list");
	}
	memset(memory, 0, octets);
	s->tags = (struct tag_list *)(void *)memory;
	s->tags->memory_octets = octets;
	s->tags->entry = (struct tag_entry *)(void *)(memory + entries);
	s->tags->match = (struct tag_match *)(void *)(memory + matches);
	s->tags->unused = (uint32_t *)(void *)(memory + unused);
	s->tags->max_tags = max_tags;
	while (s->tags->free < max_tags) {
		s->tags->unused[s->tags->free] = max_tags - 1 - s->tags->free;
		s->tags->free++;
	}
	return 0;
}

int tags_build(struct call *call, struct engine_srq *s, const struct request_create_srq *r)
{
	struct engine *e = call->engine;
	int error = make_list(call, s, r->max_tags);

	if (error != 0)
		return error;
	s->lcore = &e->lcore[e->control->next_lcore++ % e->lcores];
	return make_ops(call, s, r->max_ops);
}

void tags_unbuild(struct client *c, struct engine_srq *s)
{
	if (s->tags == NULL)
		return;
	queues_give(c, s->tags->ops_offset, s->tags->ops_octets);
	account_give_memory(&c->objects->account, s->tags->memory_octets);
	free(s->tags);
	s->tags = NULL;
}

void tags_describe(const struct engine_srq *s, struct reply_create_srq *reply)
{
	reply->ops_offset = s->tags->ops_offset;
	reply->ops_size = s->tags->ops.size;
	reply->ops_stride = s->tags->ops.stride;
	reply->lcore = s->lcore->index;
}

void tags_widen(struct qp_caps *caps)
{
	caps->max_recv_sge = MAX_OF(caps->max_recv_sge, LIMIT_TAG_SGE);
	caps->max_send_sge = MAX_OF(caps->max_send_sge, LIMIT_TAG_SGE);
	caps->max_inline = MAX_OF(caps->max_inline, 16u); /* a FIN */
	caps->own_wr = 2 * LIMIT_RENDEZVOUS; /* a READ and a FIN each */
}
