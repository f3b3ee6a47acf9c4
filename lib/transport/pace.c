/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "config/limits.h"
#include "transport/pace.h"

void pace_init(struct pace *p)
{
	p->window = LIMIT_WINDOW_START;
	p->acknowledged = 0;
}

void pace_acknowledged(struct pace *p, uint32_t packets)
{
	p->acknowledged += packets;
	if (p->acknowledged < p->window)
		return;
	p->acknowledged = 0;
	p->window = MIN_OF(p->window + 1, LIMIT_WINDOW);
}

void pace_lost(struct pace *p)
{
	p->acknowledged = 0;
	p->window = MAX_OF(p->window / 2, LIMIT_WINDOW_FLOOR);
}

void pace_silent(struct pace *p)
{
	p->acknowledged = 0;
	p->window = LIMIT_WINDOW_FLOOR;
}
