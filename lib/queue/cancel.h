/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between these two a thread is not cancelled (pthread_cancel(3)): it holds a lock, or has half of
 * something. Programs cancel threads that wait for events (rping does), whatever call those happen
 * to be in; only calls that wait for an event are places to be cancelled in.
 */
#ifndef QUEUE_CANCEL_H
#define QUEUE_CANCEL_H

#include <pthread.h>

/* What cancel_restore() wants. */
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
