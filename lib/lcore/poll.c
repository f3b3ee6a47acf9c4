/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of an lcore: all its work, in a fixed order. */
#include <rte_branch_prediction.h>

#include "lcore/cycles.h"
#include "lcore/inside.h"
#include "lcore/exception/exception.h"
#include "lcore/paths.h"
#include "lcore/window.h"

/*
 * A copy of a program's memory may block. The control path must not block, because it watches
 * lcores that do. So it makes no such copies when it stands in for an lcore. It calls the lcore's
 * thread instead, if there is one.
 */
static bool may_copy(const struct lcore *l)
{
	if (!l->stood_in)
		return true;
	for (uint32_t i = 0; i < l->clients; i++)
		if (l->client[i]->memory != NULL)
			return false;
	return true;
}

bool lcore_let_leave(struct lcore *l, const struct client *c, nanotime now)
{
	if (may_copy(l)) {
		rx_poll(l, now);
		place_poll(l, now);
		tx_poll(l, now);
		return true;
	}
	/* The embedding program waits here, so its memory cannot block: sends its frames only. */
	if (c->memory == NULL && !client_shares(c)) {
		tx_of_client(l, c, now);
		return true;
	}
	return false;
}

void lcore_let_arrive(struct lcore *l, nanotime now)
{
	if (may_copy(l))
		rx_poll(l, now);
}

uint32_t lcore_poll(struct lcore *l)
{
	nanotime now = clock_now();
	uint32_t work = 0;

	if (unlikely(l->cycles->every != 0))
		cycles_begin(l, now);
	paths_polled(l, l->worked, now);
	work += messages_poll(l, now);
	stage_switch(l->stages, STAGE_RX);
	work += rx_poll(l, now);
	stage_switch(l->stages, STAGE_PLACE);
	if (l->has_jobs)
		work += place_poll(l, now);
	stage_switch(l->stages, STAGE_POST);
	work += doorbells_poll(l, now);
	stage_switch(l->stages, STAGE_OTHER);
	if (wheel_is_due(&l->wheel, now))
		work += wheel_turn(l, now);
	stage_switch(l->stages, STAGE_TX);
	work += tx_poll(l, now);
	stage_switch(l->stages, STAGE_OTHER);
	if (l->engine->exception != NULL)
		work += exception_poll(l);
	if (!TAILQ_EMPTY(&l->operations))
		work += operations_run(l, now);
	if (!TAILQ_EMPTY(&l->moderated))
		work += moderate_poll(l, now);
	if (unlikely(l->stages != NULL))
		cycles_end(l, work > 0);

	l->worked = work > 0;
	l->stats.polls++;
	if (work == 0)
		l->stats.idle_polls++;
	return work;
}
