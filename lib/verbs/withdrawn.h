/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events whose object was destroyed before the program took them. Linux takes them back. Here they
 * are messages in a socket whose other end the engine has, so the library removes them:
 *
 *	  next		 destroyed with b		 when a was taken
 *	| a | b | c |	| a | b | c |  may_wait		| c |
 *	| b | c |	| c |				(removed at once)
 *
 * Otherwise the descriptor would be readable, and the program's call for the event would skip the
 * message and block.
 */
#ifndef VERBS_WITHDRAWN_H
#define VERBS_WITHDRAWN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/command.h"

/* Beside each descriptor of events. All zero is a valid start, but for the lock. */
struct withdrawn {
	pthread_mutex_t lock;
	bool may_wait; /* atomic: a message of a destroyed object may be behind another one */
	/*
	 * A message of an object that lives, which withdrawn_remove() received because another
	 * thread was faster with the one before it. That thread takes it.
	 */
	bool has_kept;
	union {
		struct channel_message channel;
		struct async_message async;
	} kept;
};

void withdrawn_init(struct withdrawn *w);
/*
 * Removes the messages of destroyed objects at the head of `fd`, each of `octets` octets. After an
 * object was destroyed, and after each message while may_wait. Any thread.
 */
void withdrawn_remove(struct withdrawn *w, int fd, size_t octets,
		      bool (*is_of_nothing)(const void *message));
/* For a thread that has received a message of a destroyed object. True: here is another one. */
bool withdrawn_kept(struct withdrawn *w, void *message, size_t octets);

/* Relaxed: recv(2) takes the lock of the socket, before which the other thread has set it. */
static inline bool withdrawn_may_wait(const struct withdrawn *w)
{
	return __atomic_load_n(&w->may_wait, __ATOMIC_RELAXED);
}

#endif
