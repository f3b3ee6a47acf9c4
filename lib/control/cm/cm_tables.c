/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds connections by what messages name. A peer's numbers are only looked up together with its
 * address, so that no host finds or ends the connections of another.
 *
 * Peers choose their ids, queue pair numbers, GUIDs and addresses. The hash has a secret key, so
 * that they cannot put all their connections into one bucket and make each message search it.
 */
#include <stdlib.h>

#include "base/bits.h"
#include "control/cm/cm_manager.h"

/* The last steps of splitmix64. */
static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

static uint32_t bucket(const struct engine *e, uint64_t number)
{
	static_assert(CM_BUCKETS == 4096, "twelve bits of a hash");
	return (uint32_t)(mix(number ^ e->control->cm->secret) >> 52);
}

static uint64_t mix_gid(const struct engine *e, const struct gid *gid)
{
	return mix(mix(load_be64(gid->octet) ^ e->control->cm->secret) ^ load_be64(gid->octet + 8));
}

/* Nested, so that a choice of one value cannot cancel another one. */
static uint32_t peer_bucket(const struct engine *e, uint32_t number, uint64_t guid,
			    const struct gid *peer)
{
	return bucket(e, mix(mix_gid(e, peer) ^ guid) ^ number);
}

uint32_t *cm_source_count(struct engine *e, const struct gid *source)
{
	return &e->control->cm->by_source[bucket(e, mix_gid(e, source))];
}

void cm_tables_add(struct engine *e, struct cm_link *l)
{
	l->stands = true;
	/* Answers to a SIDR_REQ have no own id, and none is looked up. */
	if (l->core.local_id != 0) {
		l->by_local = true;
		LIST_INSERT_HEAD(&e->control->cm->local[bucket(e, l->core.local_id)], l,
				 local_link);
	}
	cm_tables_update(e, l);
}

void cm_tables_update(struct engine *e, struct cm_link *l)
{
	struct cm_manager *m = e->control->cm;

	if (!l->stands)
		return;
	if (!l->by_peer && l->core.remote_id != 0) {
		l->by_peer = true;
		LIST_INSERT_HEAD(&m->remote[peer_bucket(e, l->core.remote_id, l->core.remote_guid,
							&l->path.dgid)],
				 l, remote_link);
		l->by_peer_qpn = true;
		LIST_INSERT_HEAD(&m->remote_qpn[peer_bucket(e, l->core.remote_qpn,
							    l->core.remote_guid, &l->path.dgid)],
				 l, remote_qpn_link);
	}
	/* A rejected request does not own the queue pair, which may be in another request. */
	if (l->by_peer_qpn && cm_state(&l->core) == CM_REJECTED) {
		l->by_peer_qpn = false;
		LIST_REMOVE(l, remote_qpn_link);
	}
	if (!l->by_qpn && l->core.local_qpn != 0) {
		l->by_qpn = true;
		LIST_INSERT_HEAD(&m->local_qpn[bucket(e, l->core.local_qpn)], l, local_qpn_link);
	}
}

void cm_tables_remove(struct cm_link *l)
{
	if (l->by_local)
		LIST_REMOVE(l, local_link);
	if (l->by_peer)
		LIST_REMOVE(l, remote_link);
	if (l->by_peer_qpn)
		LIST_REMOVE(l, remote_qpn_link);
	if (l->by_qpn)
		LIST_REMOVE(l, local_qpn_link);
	l->stands = l->by_local = l->by_peer = l->by_peer_qpn = l->by_qpn = false;
}

struct cm_link *cm_find_local(struct engine *e, uint32_t id, bool datagram, const struct gid *peer)
{
	struct cm_link *l;

	LIST_FOREACH(l, &e->control->cm->local[bucket(e, id)], local_link)
	if (l->core.local_id == id && l->datagram == datagram && !(datagram && l->passive) &&
	    gid_equal(&l->path.dgid, peer))
		return l;
	return NULL;
}

struct cm_link *cm_find_remote(struct engine *e, uint32_t id, uint64_t guid, const struct gid *peer)
{
	struct cm_link *l;

	LIST_FOREACH(l, &e->control->cm->remote[peer_bucket(e, id, guid, peer)], remote_link)
	if (l->core.remote_id == id && l->core.remote_guid == guid && !l->datagram &&
	    gid_equal(&l->path.dgid, peer))
		return l;
	return NULL;
}

struct cm_link *cm_find_responder(struct engine *e, const struct cm_input *in)
{
	struct cm_link *l;

	LIST_FOREACH(l,
		     &e->control->cm->remote[peer_bucket(e, in->message.local_id, 0, &in->source)],
		     remote_link)
	if (l->datagram && l->passive && gid_equal(&l->path.dgid, &in->source) &&
	    cm_sidr_compare(&l->core, &in->message) == CM_REPETITION)
		return l;
	return NULL;
}

struct cm_link *cm_find_qpn(struct engine *e, uint32_t qpn)
{
	struct cm_link *l;

	LIST_FOREACH(l, &e->control->cm->local_qpn[bucket(e, qpn)], local_qpn_link)
	if (l->core.local_qpn == qpn && cm_state(&l->core) == CM_REP_SENT)
		return l;
	return NULL;
}

/* A repetition takes precedence over a stale connection. */
static void relate(struct cm_link *l, const struct cm_input *in, const struct cm_link *except,
		   struct cm_link **found, enum cm_relation *relation)
{
	enum cm_relation r;

	if (l == except || l->datagram || *relation == CM_REPETITION ||
	    !gid_equal(&l->path.dgid, &in->source))
		return;
	r = cm_compare(&l->core, &in->message);
	if (r == CM_UNRELATED)
		return;
	*relation = r;
	*found = l;
}

enum cm_relation cm_find_relation(struct engine *e, const struct cm_input *in,
				  const struct cm_link *except, struct cm_link **found)
{
	const struct cm_message *asks = &in->message;
	struct cm_manager *m = e->control->cm;
	enum cm_relation relation = CM_UNRELATED;
	uint32_t by_id = peer_bucket(e, asks->local_id, asks->ca_guid, &in->source);
	uint32_t by_qpn = peer_bucket(e, cm_sender_qpn(asks), asks->ca_guid, &in->source);
	struct cm_link *l;

	LIST_FOREACH(l, &m->remote[by_id], remote_link)
	relate(l, in, except, found, &relation);
	LIST_FOREACH(l, &m->remote_qpn[by_qpn], remote_qpn_link)
	relate(l, in, except, found, &relation);
	return relation;
}

/* Random, so that a peer of an earlier engine at this address does not know it. */
uint32_t cm_new_local_id(struct engine *e)
{
	for (;;) {
		uint32_t id = arc4random();
		struct cm_link *l;

		LIST_FOREACH(l, &e->control->cm->local[bucket(e, id)], local_link)
		if (l->core.local_id == id)
			break;
		/* Ends, as at most LIMIT_CM_LINKS of 2^32 are taken. */
		if (id != 0 && l == NULL)
			return id;
	}
}
