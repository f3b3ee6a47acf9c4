/* SPDX-License-Identifier: BSD-3-Clause */
#include "parking.h"

void parking_init(struct parking *p, const struct path *path)
{
	*p = (struct parking){ .path = path, .last = &p->first };
}

void parking_put(struct parking *p, struct endpoint *e)
{
	if (e->parked)
		return;
	e->parked = true;
	e->next_parked = NULL;
	*p->last = e;
	p->last = &e->next_parked;
}

struct endpoint *parking_take(struct parking *p)
{
	struct endpoint *e = p->first;

	if (e == NULL)
		return NULL;
	p->first = e->next_parked;
	if (p->first == NULL)
		p->last = &p->first;
	e->parked = false;
	return e;
}
