/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the engine reaches a region of an attached program. Pages of a file that the program names
 * and that the engine can map safely are direct; all others are peer memory.
 *
 *	region    |--------|===== backing 0 =====|---|== backing 1 ==|-----|
 *	pieces      peer         direct           peer      direct    peer
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "control/control.h"

#define PIECES_MAX (2 * BACKING_MAX + 1)
#define WRITES	   (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)

struct pieces {
	uint32_t count;
	struct region_piece piece[PIECES_MAX];
	uint32_t uses;
	uint32_t promoted; /* uses that are of the promoted file */
	struct backing_use use[BACKING_MAX];
};

static void add_piece(struct pieces *p, const struct mr_wish *w, uint64_t offset, void *direct)
{
	/* Two adjacent peer pieces become one. */
	if (direct == NULL && p->count > 0 && p->piece[p->count - 1].direct == NULL)
		return;
	p->piece[p->count++] = (struct region_piece){
		.offset = offset,
		.direct = direct,
		.peer_address = w->address + offset,
	};
}

/*
 * Backings must be sorted, not overlap, lie inside the region and name descriptors of the message.
 */
static int check_backing(struct call *call, const struct mr_wish *w, uint64_t from,
			 const struct mr_backing *b)
{
	if (b->length == 0 || b->offset < from || !range_inside(b->offset, b->length, w->length))
		return call_fail(call, EINVAL,
				 "the backings are not sorted, overlap or exceed the region");
	if (b->fd != BACKING_PROMOTED && (b->fd < 0 || (uint32_t)b->fd >= call->in.count))
		return call_fail(call, EINVAL,
				 "a backing names descriptor %d, but the message has %u", b->fd,
				 call->in.count);
	if (b->file_offset + b->length < b->file_offset)
		return call_fail(call, EINVAL, "a backing's file range wraps");
	return 0;
}

/* NULL: the program has left its promoted file since it named the backing, or uses too much of it. */
static void *map_promoted(struct client *c, const struct mr_wish *w, struct pieces *p,
			  const struct mr_backing *b)
{
	struct client_objects *o = c->objects;
	uint8_t *at;

	if (w->leaves < o->leaves || o->promoted_uses == LIMIT_PROMOTED_USES ||
	    !backing_use(c, o->promoted, b->file_offset, b->length, true, &p->use[p->uses], &at))
		return NULL;
	p->uses++;
	p->promoted++;
	o->promoted_uses++;
	return at;
}

/* Where the engine maps those octets, or NULL: then they are peer memory. */
static void *map_backing(struct call *call, const struct mr_wish *w, struct pieces *p,
			 const struct mr_backing *b)
{
	bool writes = (w->access & WRITES) != 0, found;
	struct backing_use *use = &p->use[p->uses];
	struct client *c = call->client;
	uint8_t *at;

	if (b->fd == BACKING_PROMOTED)
		return map_promoted(c, w, p, b);
	found = (b->writable || !writes) &&
		backing_use(c, call->in.fd[b->fd], b->file_offset, b->length, writes, use, &at);
	p->uses += found;
	return found ? at : NULL;
}

static int lay_out(struct call *call, const struct mr_wish *w, struct pieces *p)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < w->backings; i++) {
		const struct mr_backing *b = &w->backing[i];
		int error = check_backing(call, w, at, b);

		if (error != 0)
			return error;
		if (b->offset > at)
			add_piece(p, w, at, NULL);
		add_piece(p, w, b->offset, map_backing(call, w, p, b));
		at = b->offset + b->length;
	}
	if (at < w->length)
		add_piece(p, w, at, NULL);
	return 0;
}

static int keep(struct mr *m, const struct pieces *p)
{
	m->region = calloc(1, sizeof(*m->region) + p->count * sizeof(p->piece[0]));
	if (p->uses > 0)
		m->use = calloc(p->uses, sizeof(*m->use));
	if (m->region == NULL || (p->uses > 0 && m->use == NULL)) {
		free(m->use);
		m->use = NULL;
		return ENOMEM;
	}
	m->region->pieces = p->count;
	memcpy(m->region->piece, p->piece, p->count * sizeof(p->piece[0]));
	m->uses = p->uses;
	m->promoted = p->promoted;
	if (p->uses > 0)
		memcpy(m->use, p->use, p->uses * sizeof(*m->use));
	return 0;
}

/*
 * An lcore never copies from or to a program's address space: another mapping may replace it at any
 * time and block for ever. So a program with memory that the engine cannot map gets a mover.
 */
static int reach(struct call *call, const struct pieces *p)
{
	bool peer = false;
	int error;

	for (uint32_t i = 0; i < p->count; i++)
		peer |= p->piece[i].direct == NULL;
	error = peer ? client_mover_give(call->client) : 0;
	return error == 0 ? 0
			  : call_fail(call, error,
				      "the engine cannot create a thread for the program's copies");
}

int region_lay_out(struct call *call, const struct mr_wish *w, struct mr *m)
{
	struct pieces p = { 0 };
	int error;

	if (call->client->embedded) {
		add_piece(&p, w, 0, (void *)(uintptr_t)w->address);
		return keep(m, &p);
	}
	error = lay_out(call, w, &p);
	if (error == 0)
		error = reach(call, &p);
	if (error == 0)
		error = keep(m, &p);
	for (uint32_t i = 0; error != 0 && i < p.uses; i++)
		backing_leave(call->client, &p.use[i]);
	if (error != 0)
		call->client->objects->promoted_uses -= p.promoted;
	return error;
}

void region_unmap(struct client *c, struct mr *m)
{
	for (uint32_t i = 0; i < m->uses; i++)
		backing_leave(c, &m->use[i]);
	free(m->use);
	c->objects->promoted_uses -= m->promoted;
	m->use = NULL;
	m->uses = m->promoted = 0;
}

void region_enter_promoted(struct client *c, struct mr *m)
{
	if (m->promoted > 0)
		LIST_INSERT_HEAD(&c->objects->promoted_mrs, m, promoted_link);
}

void region_exit_promoted(struct mr *m)
{
	if (m->promoted > 0)
		LIST_REMOVE(m, promoted_link);
}
