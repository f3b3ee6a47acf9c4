/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that an lcore does. */
#include "engine/exception.h"
#include "engine/window.h"

void lcore_let_leave(struct lcore *l, nanotime now)
{
	rx_poll(l, now);
	place_poll(l, now);
	tx_poll(l, now);
}

uint32_t lcore_poll(struct lcore *l)
{
	nanotime now = clock_now();
	uint32_t work = 0;

	work += messages_poll(l, now);
	work += rx_poll(l, now);
	work += place_poll(l, now);
	work += doorbells_poll(l, now);
	work += wheel_turn(l, now);
	work += tx_poll(l, now);
	if (l->engine->exception != NULL)
		work += exception_poll(l);
	if (!TAILQ_EMPTY(&l->operations))
		work += operations_run(l, now);
	if (!TAILQ_EMPTY(&l->moderated))
		work += moderate_poll(l, now);

	l->stats.polls++;
	if (work == 0)
		l->stats.idle_polls++;
	return work;
}
