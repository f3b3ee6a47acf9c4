/* SPDX-License-Identifier: BSD-3-Clause */
/* The MTU that programs see, from the frames that a port can carry. */
#include "base/bits.h"
#include "control/control.h"

/* The largest ibv_mtu whose packets fit Ethernet frames of this MTU. 0: none. */
static uint8_t largest_ib_mtu(uint32_t ethernet)
{
	for (uint8_t mtu = 5; mtu >= 1; mtu--)
		if ((128u << mtu) + HEADERS_MOST <= ethernet)
			return mtu;
	return 0;
}

void engine_take_mtu(struct engine *e, uint32_t ethernet)
{
	e->active_mtu = largest_ib_mtu(ethernet);
	e->max_frame = ethernet + 14 + 4;
}

bool engine_follow_mtu(struct engine *e)
{
	uint32_t mtu = e->control->options.mtu;
	uint8_t before = e->active_mtu;

	mtu = mtu != 0 ? MIN_OF(mtu, e->port->mtu) : e->port->mtu;
	engine_take_mtu(e, mtu);
	/* Too small for any packet, but ibv_mtu has no value for that. */
	e->active_mtu = MAX_OF(e->active_mtu, 1);
	return e->active_mtu != before;
}
