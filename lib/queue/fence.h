/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences, for where an atomic access alone does not order enough. */
#ifndef QUEUE_FENCE_H
#define QUEUE_FENCE_H

#include <stdint.h>

/*
 * Stores before it are visible before loads after it happen. Both sides of a Dekker pair need one.
 */
static inline void queue_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	/*
	 * gcc's thread sanitizer does not know fences; on this machine a locked instruction is one
	 */
	uint32_t word = 0;

	__atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Stores before it are visible before stores after it. */
static inline void queue_release_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	queue_fence();
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/* Loads before it happen before loads after it. */
static inline void queue_acquire_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	queue_fence();
#else
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

#endif
