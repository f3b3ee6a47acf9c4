/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between these two calls a thread cannot be cancelled (pthread_cancel(3)), because it holds a lock
 * or has done half of something. Programs such as rping cancel threads that wait for events,
 * whatever call those threads are in at that moment. Only calls that wait for an event, or for its
 * acknowledgement, are cancellation points.
 */
#ifndef QUEUE_CANCEL_H
#define QUEUE_CANCEL_H

#include <pthread.h>

/* Returns the state to pass to cancel_restore(). */
static inline int cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_restore(int before)
{
	pthread_setcancelstate(before, NULL);
}

#endif
