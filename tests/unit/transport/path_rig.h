/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a path in which tests begin. */
#ifndef TESTS_TRANSPORT_PATH_RIG_H
#define TESTS_TRANSPORT_PATH_RIG_H

#include <criterion/criterion.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/late.h"
#include "transport/path.h"

#define US TIME_US

/* A path that knows the way already. */
static inline void begin(struct path *p)
{
	path_init(p);
	path_looked(p);
}

/* One round trip of a busy sender: the window goes out and is acknowledged. */
static inline void round_trips(struct path *p, uint32_t n, nanotime rtt, nanotime *now)
{
	const uint32_t packet = 1000;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t sent = 0;

		for (; path_may_send(p, packet, *now) && sent < 100000; sent++)
			path_sent(p, packet, 0, *now);
		*now += rtt;
		path_rtt(p, rtt, *now);
		for (; sent > 0; sent--)
			path_gone(p, packet, true);
	}
}

/* A path that has found its window. Returns the window's octets. */
static inline uint64_t go_on(struct path *p, nanotime *now)
{
	begin(p);
	round_trips(p, 4, 20 * US, now);
	p->starting = false;
	return p->window;
}

#endif
