/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of one queue. It is held for a few dozen instructions and almost never contended. A
 * waiter soon yields its core, because a preempted holder would keep it spinning for a whole time
 * slice.
 *
 * Only threads of one program share it, so its atomics are here and not in lib/queue.
 */
#ifndef CLIENT_LOCK_H
#define CLIENT_LOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/limits.h"

struct queue_lock {
	uint32_t taken;
	uint32_t is_single; /* the program promised to use it from one thread: nothing is locked */
};

static inline void queue_lock_init(struct queue_lock *l)
{
	l->taken = 0;
	l->is_single = 0;
}

/* Acquire pairs with the release in queue_unlock: we see what the last holder wrote. */
static inline void queue_lock(struct queue_lock *l)
{
	uint32_t spins = 0;

	if (l->is_single)
		return;
	while (__atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE) != 0) {
		while (__atomic_load_n(&l->taken, __ATOMIC_RELAXED) != 0) {
			if (++spins % LIMIT_LOCK_SPINS == 0)
				sched_yield();
			else
				__builtin_ia32_pause();
		}
	}
}

/* False: another thread holds it. */
static inline bool queue_trylock(struct queue_lock *l)
{
	return l->is_single || __atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void queue_unlock(struct queue_lock *l)
{
	if (!l->is_single)
		__atomic_store_n(&l->taken, 0, __ATOMIC_RELEASE);
}

#endif
