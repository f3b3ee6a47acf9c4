/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events. A descriptor (completion channel, async_fd) is one end of a socket pair whose other end
 * the engine holds; a message is an event. End of file says that the engine is gone: then the
 * library hands out what the engine cannot say any more.
 */
#ifndef VERBS_EVENTS_H
#define VERBS_EVENTS_H

#include <errno.h>

#include "verbs/types.h"

/*
 * Waits until the program has acknowledged every event of the object that it was given
 * (*acknowledged is counted under *mutex). Call after verbs_object_leave.
 */
void events_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acknowledged,
		 uint32_t delivered);

/*
 * The next message of `fd`. Returns 0; EAGAIN, EINTR or another errno of recv; or ENODEV at end of
 * file.
 */
int events_receive(int fd, void *message, size_t octets);

/*
 * Puts a mute descriptor in the place of one that would be readable for ever, with the same flags;
 * programs that wait in epoll would else spin. *idle_fd keeps its other end. Nobody blocks in it:
 * a recv that would has EAGAIN after EVENTS_PATIENCE, and events_end says what that means.
 */
#define EVENTS_PATIENCE_US 10000
void events_silence(int fd, int *idle_fd);

/*
 * What a call has to say that found the end of `fd`, or a mute descriptor, and has no event to
 * hand out: ENODEV, or EAGAIN if the program made the descriptor non-blocking. The descriptor is
 * mute from then on.
 */
int events_end(int fd, int *idle_fd);

/* Whether this error of events_receive is that of a descriptor whose engine is gone. */
static inline bool events_ended(int error, const int *idle_fd)
{
	return error == ENODEV ||
	       (error == EAGAIN && __atomic_load_n(idle_fd, __ATOMIC_ACQUIRE) >= 0);
}

#endif
