/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a tag matching SRQ, and programs' operations on it (ibv_post_srq_ops(3)). */
#include <string.h>

#include "base/bits.h"
#include "lcore/tag/tag.h"
#include "lcore/inside.h"
#include "queue/doorbell.h"

/* A copy of one operation, with all of its slot. */
struct tag_slot {
	struct tag_work work;
	struct work_sge sge[LIMIT_TAG_SGE];
};

void tag_release(struct engine_srq *s, struct tag_entry *t)
{
	struct tag_list *list = s->tags;

	t->state = TAG_FREE;
	t->qp = NULL;
	list->unused[list->free++] = (uint32_t)(t - list->entry);
	/* Release: a program that sees the slot free also sees everything that was done before. */
	__atomic_fetch_add(&s->page->tags_gone, 1, __ATOMIC_RELEASE);
}

struct tag_entry *tag_unlist(struct tag_list *list, uint32_t index)
{
	struct tag_entry *t = &list->entry[list->match[index].entry];

	list->listed--;
	memmove(&list->match[index], &list->match[index + 1],
		(list->listed - index) * sizeof(*list->match));
	return t;
}

void tags_phase(struct tag_list *list)
{
	if (list->unexpected != list->handled)
		return;
	/* Waiting entries are the newest, so the search ends at the first that does not wait. */
	for (uint32_t i = list->listed; i > 0 && list->match[i - 1].waits; i--)
		list->match[i - 1].waits = false;
}

static bool add(struct tag_list *list, const struct tag_slot *o)
{
	const struct tag_work *w = &o->work;
	struct tag_entry *t;
	uint32_t index;

	if (list->free == 0 || w->num_sge > LIMIT_TAG_SGE)
		return false;
	index = list->unused[--list->free];
	t = &list->entry[index];
	t->recv_wr_id = w->recv_wr_id;
	t->state = TAG_LISTED;
	t->num_sge = w->num_sge;
	memcpy(t->sge, o->sge, sizeof(t->sge));
	list->match[list->listed++] = (struct tag_match){
		.tag = w->tag,
		.mask = w->mask,
		.handle = w->handle,
		.entry = index,
		.waits = list->unexpected != list->handled,
	};
	return true;
}

/* False: a message has taken the entry, or it never existed. */
static bool delete (struct engine_srq *s, uint32_t handle)
{
	struct tag_list *list = s->tags;

	for (uint32_t i = 0; i < list->listed; i++) {
		if (list->match[i].handle != handle)
			continue;
		tag_release(s, tag_unlist(list, i));
		return true;
	}
	return false;
}

static bool execute(struct engine_srq *s, const struct tag_slot *o)
{
	const struct tag_work *w = &o->work;

	if (w->flags & TAG_COUNTED) {
		s->tags->handled = w->unexpected;
		tags_phase(s->tags);
	}
	if (w->opcode == TAG_ADD)
		return add(s->tags, o);
	return w->opcode == TAG_DEL ? delete (s, w->handle) : w->opcode == TAG_SYNC;
}

static void finish(struct lcore *l, struct engine_srq *s, const struct tag_work *w, bool ok,
		   nanotime now)
{
	static const uint8_t opcode[] = {
		[TAG_ADD] = COMPLETION_TM_ADD,
		[TAG_DEL] = COMPLETION_TM_DEL,
		[TAG_SYNC] = COMPLETION_TM_SYNC,
	};
	struct completion c = {
		.wr_id = w->wr_id,
		.status = ok ? STATUS_SUCCESS : STATUS_TM_ERR,
		.opcode = w->opcode < ARRAY_SIZE(opcode) ? opcode[w->opcode] : COMPLETION_TM_SYNC,
		.vendor_err = ok || w->opcode == TAG_DEL ? REASON_NONE : REASON_WORK_MALFORMED,
		.wc_flags = s->tags->unexpected != s->tags->handled ? COMPLETION_TM_SYNC_REQ : 0u,
		.solicited = !ok,
		.from_srq = 1,
		.work_index = s->handle,
	};

	if (!ok && w->opcode == TAG_ADD) /* the program counts the entries that it may still add */
		__atomic_fetch_add(&s->page->tags_gone, 1, __ATOMIC_RELEASE);
	if (!ok || (w->flags & TAG_SIGNALED))
		cq_complete(l, NULL, s->cq, &c, now);
}

void tags_drain(struct lcore *l, struct engine_srq *s, nanotime now)
{
	struct ring_side *ring = &s->tags->ops;
	uint32_t n = srq_is_broken(s) ? 0 : ring_readable(ring);
	struct tag_slot o;

	if (n == RING_BROKEN) {
		srq_break(l, s);
		return;
	}
	for (uint32_t i = 0; i < n; i++) { /* the ring holds no more than n */
		bool ok;

		memcpy(&o, ring_read_slot(ring, 0), sizeof(o));
		ok = execute(s, &o);
		ring_consume(ring, 1); /* first, as the completion lets the program post again */
		finish(l, s, &o.work, ok, now);
	}
}

void tags_bell(struct lcore *l, struct client *c, uint32_t number, nanotime now)
{
	struct engine_srq *s = srq_find(l->engine, number);

	if (s == NULL || s->client != c || s->lcore != l)
		return;
	doorbell_clear(&s->page->doorbell);
	tags_drain(l, s, now);
}
