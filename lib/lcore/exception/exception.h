/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exception path: frames that are not the engine's go to the kernel's interface beside the port
 * (drivers/kernel_interface), and the kernel's frames leave by the port. A thread of its own makes
 * the system calls; lcores only see two rings.
 *
 *	lcores   rx burst -> not ours -> collected -> `up` --(eventfd if it sleeps)--> thread -> write
 *	lcore 0  tx burst <----------------------- `down` <--(wakes a sleeping lcore)- thread <- read
 *
 * A flood of such frames fills `up`; further frames are dropped and counted, and cost an lcore only
 * their decoding. Frames of the kernel wait in `down`, then in the interface's own queue, where the
 * kernel's senders feel it.
 */
#ifndef LCORE_EXCEPTION_H
#define LCORE_EXCEPTION_H

#include <stdatomic.h>

#include "lcore/lcore.h"

/* The engine's addresses, as lcores read them: RoCE packets for other addresses are the kernel's.
 */
struct exception_addresses {
	uint32_t count; /* atomic */
	uint64_t half[LIMIT_GIDS][2]; /* atomic: octets as they lie in a gid */
};

/* Control path. An lcore that reads meanwhile may misjudge one frame. */
void exception_addresses_set(struct exception_addresses *a, const struct engine_gid *gid);
bool exception_is_own(const struct exception_addresses *a, const struct gid *g);

/*
 * Whether a frame that the engine refused for the reason `why` is the kernel's. A port with a VLAN
 * (not 0) drops frames without its tag. `frame` may be any octets.
 */
bool exception_wants(const struct exception_addresses *own, uint16_t vlan, enum reason why,
		     const uint8_t *frame, size_t length);

struct exception {
	struct engine *engine;
	struct kernel_interface *interface;
	struct exception_addresses own;
	struct rte_ring *up;
	struct rte_ring *down;
	pthread_t thread;
	bool thread_runs;
	int wake_fd; /* eventfd */
	uint32_t sleeping; /* atomic */
	uint32_t stop; /* atomic */
	/* lcore 0: taken from `down` and not sent yet */
	uint32_t pending_first, pending_count;
	struct rte_mbuf *pending[LIMIT_BURST];
	/* written by the thread, read by any */
	atomic_uint_fast64_t given, taken; /* frames */
	atomic_uint_fast64_t refused; /* by the kernel: its interface is down */
	bool starved; /* no buffer was free */
	bool gone; /* the interface was deleted */
};

/* 0, or an errno and `why`. Nothing to do without port->kernel. */
int exception_open(struct engine *e, char *why, size_t why_size);
/* Called when no lcore is polled any more. */
void exception_close(struct engine *e);

/* ---- lcores ---- */

/* The frame is the kernel's: collects it, to be handed over with the rest of the burst. */
void exception_collect(struct lcore *l, struct rte_mbuf *m);
void exception_flush(struct lcore *l);
/* Sends the kernel's frames; returns how much there was to do. */
uint32_t exception_poll(struct lcore *l);

#endif
