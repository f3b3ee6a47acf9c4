/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/requester/window.h"

#define GROW_EVERY  16u /* packets acknowledged for one packet more */
#define LOSS_APART  64u /* packets acknowledged between losses that no burst of ours caused */
#define LOSS_SHRINK 8u /* such a loss costs one part in so many */

void window_init(struct window *w)
{
	w->packets = LIMIT_WINDOW_START;
	w->acknowledged = 0;
	w->since_loss = LOSS_APART;
}

void window_acknowledged(struct window *w, uint32_t packets)
{
	assert(packets > 0 && "progress is of something");
	w->since_loss = MIN_OF(w->since_loss + packets, LOSS_APART);
	w->acknowledged += packets;
	if (w->acknowledged < GROW_EVERY)
		return;
	w->packets = MIN_OF(w->packets + w->acknowledged / GROW_EVERY, LIMIT_WINDOW);
	w->acknowledged %= GROW_EVERY;
	assert(w->packets >= LIMIT_WINDOW_FLOOR && "it only grew");
}

static void shrink(struct window *w, uint32_t by)
{
	assert(by <= w->packets && w->packets <= LIMIT_WINDOW);
	w->acknowledged = 0;
	w->since_loss = 0;
	w->packets = MAX_OF(w->packets - by, LIMIT_WINDOW_FLOOR);
}

void window_lost(struct window *w)
{
	bool apart = w->since_loss >= LOSS_APART;

	shrink(w, apart ? w->packets / LOSS_SHRINK : w->packets / 2);
}

void window_silent(struct window *w)
{
	shrink(w, w->packets / 2);
}
