/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences, where an atomic access alone does not order what it must. */
#ifndef QUEUE_FENCE_H
#define QUEUE_FENCE_H

#include <stdint.h>

/* A store before it is visible before a load behind it is made: both sides of a Dekker pair. */
static inline void queue_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	/* gcc's thread sanitizer knows no fences; a locked instruction is one on this machine */
	uint32_t word = 0;

	__atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* A store before it is visible before a store behind it is. */
static inline void queue_release_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	queue_fence();
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

#endif
