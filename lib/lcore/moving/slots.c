/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "lcore/moving/lent.h"
#include "lcore/moving/slots.h"

struct slots {
	struct held_list free; /* given back */
	uint32_t untouched; /* the first place that was never taken, so that it has no memory yet */
	uint32_t free_count;
	uint32_t kept, few, share;
	uint16_t of_client[LIMIT_CLIENTS];
	uint16_t of_user[LIMIT_CLIENTS];
	struct held_packet slot[];
};

struct slots *slots_create(uint32_t places, uint32_t kept, uint32_t few, uint32_t share)
{
	struct slots *s = calloc(1, sizeof(*s) + places * sizeof(s->slot[0]));

	if (s == NULL)
		return NULL;
	s->kept = kept;
	s->few = few;
	s->share = share;
	STAILQ_INIT(&s->free);
	s->free_count = places;
	return s;
}

void slots_destroy(struct slots *s)
{
	free(s);
}

static bool may_take(const struct slots *s, const struct client *c)
{
	uint32_t of_user = s->of_user[c->user], most;

	if (of_user < s->few)
		return s->free_count > 0;
	most = s->share * (s->free_count - MIN_OF(s->kept, s->free_count));
	return of_user < most && s->of_client[c->number] < s->share * (most - of_user);
}

static struct held_packet *next_free(struct slots *s)
{
	struct held_packet *e = STAILQ_FIRST(&s->free);

	if (e == NULL)
		return &s->slot[s->untouched++];
	STAILQ_REMOVE_HEAD(&s->free, link);
	return e;
}

struct held_packet *slot_take(struct slots *s, const struct client *c, const struct packet *p,
			      struct rte_mbuf *m)
{
	struct held_packet *e;

	if (!may_take(s, c))
		return NULL;
	e = next_free(s);
	s->free_count--;
	s->of_client[c->number]++;
	s->of_user[c->user]++;
	e->mbuf = m;
	e->client = (uint16_t)c->number;
	e->user = (uint16_t)c->user;
	e->packet = *p;
	e->packet.payload = lent_keep(p, m);
	return e;
}

void slot_free(struct slots *s, struct held_packet *e)
{
	s->of_client[e->client]--;
	s->of_user[e->user]--;
	s->free_count++;
	STAILQ_INSERT_HEAD(&s->free, e, link);
}
