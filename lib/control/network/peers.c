/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/network/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "lcore/xrc.h"

#define TRIES 8 /* each fails with a probability of at most one in four */

LIST_HEAD(peer_list, engine_qp);

struct peer_table {
	uint64_t seed;
	struct peer_list bucket[LIMIT_PEER_BUCKETS];
};

int peers_open(struct engine *e)
{
	e->control->peers = calloc(1, sizeof(struct peer_table));
	if (e->control->peers == NULL)
		return ENOMEM;
	arc4random_buf(&e->control->peers->seed, sizeof(e->control->peers->seed));
	return 0;
}

void peers_close(struct engine *e)
{
	free(e->control->peers);
	e->control->peers = NULL;
}

static uint64_t mix(uint64_t h, uint64_t with)
{
	h = (h ^ with) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static struct peer_list *bucket_of(struct engine *e, const struct gid *gid, uint32_t qpn)
{
	struct peer_table *t = e->control->peers;
	uint64_t half[2], h;

	memcpy(half, gid->octet, sizeof(half));
	h = mix(mix(mix(t->seed, half[0]), half[1]), qpn);
	return &t->bucket[h >> 32 & (LIMIT_PEER_BUCKETS - 1)];
}

static bool is_peer(const struct engine_qp *q, const struct gid *gid, uint32_t qpn)
{
	return q->peer_qpn == qpn && gid_equal(&qp_address_vector(q->core)->dgid, gid);
}

static uid_t user_of(const struct client *c)
{
	return c->embedded ? geteuid() : c->objects->uid;
}

/*
 * Its lcore may be about to change the state: a connection attempt that comes too early is refused
 * and can be repeated.
 */
static bool is_over(const struct engine_qp *q)
{
	return qp_state(q->core) == QP_STATE_ERR;
}

bool peers_taken(struct engine *e, const struct engine_qp *q, const struct gid *gid, uint32_t qpn)
{
	const struct engine_qp *other;

	if (gid_is_own(e, gid))
		return false;
	LIST_FOREACH(other, bucket_of(e, gid, qpn), peer_link)
	if (other != q && is_peer(other, gid, qpn) && !is_over(other) &&
	    user_of(other->client) != user_of(q->client)) {
		e->control->peers_taken++;
		return true;
	}
	return false;
}

void peers_enter(struct engine *e, struct engine_qp *q, uint32_t qpn)
{
	peers_leave(q);
	q->peer_qpn = qpn;
	q->has_peer = true;
	LIST_INSERT_HEAD(bucket_of(e, &qp_address_vector(q->core)->dgid, qpn), q, peer_link);
	trace_connected(e, q);
}

void peers_leave(struct engine_qp *q)
{
	if (q->has_peer)
		LIST_REMOVE(q, peer_link);
	q->has_peer = false;
}

/* Whether a queue pair here is connected to this number at an own address. */
static bool is_somebodys_peer(struct engine *e, uint32_t qpn)
{
	const struct engine_qp *q;

	for (uint32_t i = 0; i < LIMIT_GIDS; i++) {
		const struct gid *own = &e->gid[i].gid;

		if (gid_is_zero(own))
			continue;
		LIST_FOREACH(q, bucket_of(e, own, qpn), peer_link)
		if (is_peer(q, own, qpn))
			return true;
	}
	return false;
}

uint32_t peers_reserve_number(struct engine *e, uint32_t lcore, struct engine_qp *q)
{
	for (int i = 0; i < TRIES; i++) {
		if (directory_reserve(e, lcore, q) == 0 || !is_somebodys_peer(e, q->qpn))
			break;
		directory_remove(e, q, clock_now());
		q->qpn = 0;
	}
	return q->qpn;
}

bool call_sees_all(const struct call *call)
{
	const struct connection *n = call->connection;

	return n == NULL || n->uid == 0 || n->uid == geteuid();
}

bool call_sees(const struct call *call, const struct client *c)
{
	return call_sees_all(call) || user_of(c) == call->connection->uid;
}

/* An XRC target may belong to several users, each with a handle. */
static bool has_target(const struct client *c, uint32_t qpn)
{
	const struct handle_table *t = &c->objects->table[OBJECT_TARGET];

	for (uint32_t i = 1; i <= t->used; i++) {
		const struct target *target = t->slot[i];

		if (target != NULL && target->qp->qpn == qpn)
			return true;
	}
	return false;
}

bool call_may_name(const struct call *call, uint32_t qpn)
{
	const struct engine_qp *q;

	if (call_sees_all(call))
		return true;
	q = directory_find(call->engine, qpn);
	return q != NULL && (call_sees(call, q->client) || has_target(call->client, qpn));
}
