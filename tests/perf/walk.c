/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of one RDMA WRITE through the source: the functions that wait for the rx burst that has the
 * packet, then those that the engine enters until the tx burst that has the acknowledgement. A line is the
 * depth and the address of a function; walk.py gives them names and counts files.
 *
 * The compiler reports entries and exits, so everything here must not be reported. By hand:
 *
 *	meson setup build-walk --buildtype=debug -Doptimization=0 \
 *		-Dc_args='-finstrument-functions -finstrument-functions-exclude-file-list=/usr/include'
 *	ninja -C build-walk tests/perf/walk && tests/perf/walk.py build-walk
 *
 * The clock stands still (--wrap=clock_now). Otherwise a slow run would also walk through what only time
 * brings, in another poll each time: a slot of the wheel.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rte_mbuf.h>

#include "../unit/lcore/loop_rig.h"
#include "../unit/lcore/loop_wire.h"

#define QUIET	     __attribute__((no_instrument_function))
#define ENTRIES_MOST 4096u
#define DEPTH_MOST   64u
#define POLLS_MOST   64u
#define OCTETS	     1024u

static struct {
	void *function;
	uint32_t depth;
} entry[ENTRIES_MOST];
static void *waiting[DEPTH_MOST]; /* functions that are being executed */
static uint32_t entries, depth;
static bool walking, over;

static QUIET void note(void *function, uint32_t at)
{
	if (entries == ENTRIES_MOST)
		return;
	entry[entries].function = function;
	entry[entries++].depth = at;
}

QUIET void __cyg_profile_func_enter(void *function, void *caller);
QUIET void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
	(void)caller;
	if (depth < DEPTH_MOST)
		waiting[depth] = function;
	depth++;
	if (walking && !over)
		note(function, depth);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
	depth--;
}

nanotime __wrap_clock_now(void);

QUIET nanotime __wrap_clock_now(void)
{
	return TIME_S;
}

/* The first frame is the WRITE; when it has arrived the next one that leaves is its acknowledgement. */
static QUIET uint16_t port_rx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t got = wire_rx(p, queue, m, n);

	for (uint32_t i = 0; got > 0 && !walking && i < depth; i++)
		note(waiting[i], i + 1);
	walking |= got > 0;
	return got;
}

static QUIET uint16_t port_tx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	(void)p;
	(void)queue;
	over |= walking;
	for (uint16_t i = 0; i < n; i++)
		wire[wire_head++ % WIRE] = m[i];
	return n;
}

static const struct port_ops ops = { .rx_burst = port_rx, .tx_burst = port_tx };
static struct port port = {
	.ops = &ops, .name = "wire", .mtu = 4200, .queues = 1, .link_up = true
};

QUIET int main(void)
{
	struct rig *r = rig_open();

	rig_use_port(r, &port);
	if (!rig_post(r, 0, WORK_RDMA_WRITE, OCTETS, WORK_SIGNALED))
		return 1;
	for (uint32_t i = 0; i < POLLS_MOST && !over; i++)
		rig_poll(r);
	if (!over) {
		fputs("walk: no acknowledgement left\n", stderr);
		return 1;
	}
	if (entries == 0) {
		fputs("walk: not built with -finstrument-functions\n", stderr);
		return 77;
	}
	for (uint32_t i = 0; i < entries; i++)
		printf("%u %p\n", entry[i].depth, entry[i].function);
	return 0;
}
