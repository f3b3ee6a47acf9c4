/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events. The descriptor of a completion channel or context (async_fd) is one end of a socket pair;
 * the engine has the other end. Each message is one event. End of file means that the engine is
 * gone. Then the library makes the events that the engine no longer can.
 */
#ifndef VERBS_EVENTS_H
#define VERBS_EVENTS_H

#include <errno.h>

#include "verbs/types.h"

/*
 * Waits until the program has acknowledged all `delivered` events of an object; *mutex guards
 * *acknowledged. Called after verbs_object_leave, when `delivered` no longer changes.
 */
void events_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acknowledged,
		 uint32_t delivered);

/*
 * An object was destroyed: its events that the program has not taken are taken back (withdrawn.h). Before
 * events_wait(), because a thread that has to acknowledge others may fetch these. Not
 * in the child of a fork, which shares the descriptors with its parent.
 */
void events_withdraw(struct context *c);
/* The same for a CQ of this channel. */
void channel_withdraw(struct channel *ch);

/*
 * Receives the next message of `fd`. Blocks unless the program made `fd` non-blocking. Returns 0,
 * an errno of recv(2) such as EAGAIN or EINTR, or ENODEV at end of file.
 */
int events_receive(int fd, void *message, size_t octets);

/*
 * Replaces `fd` at end of file by a mute descriptor with the same flags, because programs that wait
 * in epoll would spin otherwise. *idle_fd becomes its other end. A recv(2) on it does not block for
 * ever: it returns EAGAIN after LIMIT_MUTE_WAIT. Any thread.
 */
void events_silence(int fd, int *idle_fd);

/*
 * The errno for a call that found `fd` at end of file or mute and has no event to return: EAGAIN if
 * the program made the descriptor non-blocking, else ENODEV. Makes the descriptor mute.
 */
int events_end(int fd, int *idle_fd);

/* Whether this error of events_receive means that the engine is gone. */
static inline bool events_ended(int error, const int *idle_fd)
{
	return error == ENODEV ||
	       (error == EAGAIN && __atomic_load_n(idle_fd, __ATOMIC_ACQUIRE) >= 0);
}

#endif
