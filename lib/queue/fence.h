/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences, for places where an atomic access alone does not order enough. */
#ifndef QUEUE_FENCE_H
#define QUEUE_FENCE_H

#include <stdint.h>

/*
 * Stores before the fence are visible before loads after it happen. Each side of a Dekker pair
 * needs one.
 */
static inline void queue_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	/*
	 * gcc's thread sanitizer does not understand fences. On this machine a locked instruction
	 * has the same effect.
	 */
	uint32_t word = 0;

	__atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Stores before the fence are visible before stores after it. */
static inline void queue_release_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	queue_fence();
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/* Loads before the fence happen before loads after it. */
static inline void queue_acquire_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	queue_fence();
#else
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

#endif
