/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exception path. Frames that are not the engine's go to the kernel's interface beside the port
 * (drivers/kernel_interface), and the kernel's frames leave by the port. A thread of its own makes
 * the system calls; lcores only use two rings.
 *
 *	lcores   rx burst -> not ours -> collected -> `up` --(eventfd if it sleeps)--> thread -> write
 *	lcore 0  tx burst <----------------------- `down` <--(wakes a sleeping lcore)- thread <- read
 *
 * A flood of such frames fills `up`. Further frames are dropped and counted; they cost an lcore
 * only the decoding. Frames of the kernel wait in `down`, then in the interface's own queue, where
 * the kernel slows down its senders.
 */
#ifndef LCORE_EXCEPTION_H
#define LCORE_EXCEPTION_H

#include <stdatomic.h>

#include "lcore/lcore.h"

/*
 * The engine's addresses, in the form in which lcores read them. RoCE packets for other addresses
 * are the kernel's.
 */
struct exception_addresses {
	uint32_t count; /* atomic */
	uint64_t half[LIMIT_GIDS][2]; /* atomic: octets in the order of a gid */
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
	/* lcore 0: frames taken from `down` and not sent yet */
	uint32_t pending_first, pending_count;
	struct rte_mbuf *pending[LIMIT_BURST];
	/* written by the thread, read by any thread */
	atomic_uint_fast64_t given, taken; /* frames */
	atomic_uint_fast64_t refused; /* by the kernel: its interface is down */
	bool starved; /* no buffer was free */
	bool gone; /* the interface was deleted */
};

/*
 * Opens the path if the port has a kernel interface (port->kernel). Returns 0, or an errno and
 * `why`.
 */
int exception_open(struct engine *e, char *why, size_t why_size);
/* Called when no lcore is polled any more. */
void exception_close(struct engine *e);

/* ---- lcores ---- */

/* Collects a frame for the kernel. It is handed over with the rest of the burst. */
void exception_collect(struct lcore *l, struct rte_mbuf *m);
void exception_flush(struct lcore *l);
/* Sends the kernel's frames; returns how much there was to do. */
uint32_t exception_poll(struct lcore *l);

#endif
