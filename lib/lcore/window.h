/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: keys to a part of a region, which programs bind and take back through a queue
 * pair.
 *
 * The key table shows a window only while it is bound. What it shows then is `region`, which was
 * made with the window, so that binding allocates nothing. Every thread that may still read the
 * region has passed a quiescent state before it is written again. The threads that change a window:
 *
 *	bind	the only lcore there is, between its rounds; where there are several, or copies of
 *		the program's memory run elsewhere, the control thread, which can wait for them all
 *	unbind of type 2 by an invalidation: the lcore of the queue pair that it is bound through,
 *		because no other thread honours the key
 *	the end of a window or of its queue pair: the control path, when no lcore finds it any more
 *
 * Window, region and queue pair are of one context, so that they end together.
 */
#ifndef LCORE_WINDOW_H
#define LCORE_WINDOW_H

#include "lcore/lcore.h"

struct pd;

/* ibv_mw_type */
enum window_type {
	WINDOW_TYPE_1 = 1,
	WINDOW_TYPE_2 = 2,
};

struct window {
	uint8_t type; /* enum window_type */
	bool leaving; /* (control) it goes when copies are over */
	uint32_t bound; /* atomic */
	uint32_t key; /* as it is now */
	struct engine_qp *qp; /* atomic; type 2, bound: the queue pair that bound it */
	struct region *region; /* what the key table shows while it is bound */
	/* never changed */
	uint32_t slot; /* of its keys */
	struct client *client;
	struct pd *pd;
	uint32_t pd_number;
	uint32_t context;
	uint32_t handle;
};

/* Control path, with the first window of the engine: where lcores find windows. 0 or ENOMEM. */
int windows_prepare(struct engine *e);
void windows_destroy(struct engine *e);
/* Whether there ever was a window. Any thread. */
static inline bool windows_exist(const struct engine *e)
{
	/* pairs with windows_prepare: then there is the way to the control thread, too */
	return __atomic_load_n(&e->window, __ATOMIC_ACQUIRE) != NULL;
}
/* Lcores find it from now on. */
void window_show(struct engine *e, struct window *w);
/* ... no more, a grace period from now. */
void window_hide(struct engine *e, struct window *w);
/* Invalidates its key. No other thread may change the window meanwhile. */
void window_unbind(struct engine *e, struct window *w);

/* A received SEND asks to invalidate this key, which the core has checked. */
void window_invalidate(struct engine *e, uint32_t key);
/*
 * Binds the window as the queue pair's request says. No other thread may read the window or be in a
 * copy through it, so it is cleared first, then a grace period passes and copies end. Returns
 * REASON_NONE, or why the request fails.
 */
enum reason window_bind(struct engine *e, const struct engine_qp *q, const struct key_operation *o);
/* Unbinds the window of a request that is valid so far. */
enum reason window_clear(struct engine *e, const struct engine_qp *q,
			 const struct key_operation *o);
/* It is still unbound, or gone. */
bool window_is_clear(const struct engine *e, const struct key_operation *o);

/* operation.c: requests that send no packet. */
/* Makes the rings from the lcores to the control thread. False: no memory. */
bool operations_prepare(struct engine *e);
void operations_destroy(struct engine *e);
/* qp_operation() is to be executed when this round is over. */
void operation_begin(struct lcore *l, struct engine_qp *q);
/* Called between rounds, when no copy of this lcore is under way. Returns how many there were. */
uint32_t operations_run(struct lcore *l, nanotime now);
/* An invalidation waits for its queue pair's copies at a mover. Reports it if they are over. */
void operation_settle(struct engine_qp *q, nanotime now);
void operation_forget(struct lcore *l, struct engine_qp *q);
/* The operation was executed: REASON_NONE, or why it failed. On its lcore. */
void operation_report(struct lcore *l, struct engine_qp *q, enum reason why, nanotime now);

#endif
