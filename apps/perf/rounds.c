/* SPDX-License-Identifier: BSD-3-Clause */
#include "rounds.h"

#include <stdlib.h>

int rounds_begin(struct rounds *r, uint32_t qps)
{
	*r = (struct rounds){ .qps = qps, .round = 1, .left = qps };
	r->of = calloc(qps, sizeof(*r->of));
	return r->of == NULL;
}

void rounds_end(struct rounds *r)
{
	free(r->of);
	r->of = NULL;
}

void rounds_completed(struct rounds *r, uint32_t qp)
{
	r->done++;
	if (r->of[qp] == r->round)
		return;
	r->of[qp] = r->round;
	r->left--;
}

bool rounds_at(struct rounds *r, nanotime now)
{
	if (r->left > 0)
		return false;
	r->last_done = r->done;
	r->last_at = now;
	if (r->round == 1) {
		r->first_done = r->done;
		r->first_at = now;
	}
	r->round++;
	r->left = r->qps;
	return true;
}

bool rounds_enough(const struct rounds *r, nanotime time)
{
	return r->round > 2 && r->last_at - r->first_at >= time;
}
