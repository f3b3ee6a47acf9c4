/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/socket.h>

#include "queue/cancel.h"
#include "verbs/withdrawn.h"

void withdrawn_init(struct withdrawn *w)
{
	pthread_mutex_init(&w->lock, NULL);
}

static bool receive(struct withdrawn *w, int fd, size_t octets, int flags)
{
	return recv(fd, &w->kept, octets, flags | MSG_DONTWAIT) == (ssize_t)octets;
}

/*
 * Another thread may take the message between the two calls of recv(2). It finds out that the object
 * is destroyed and comes to withdrawn_kept(), which waits for this lock.
 */
static bool remove_all(struct withdrawn *w, int fd, size_t octets,
		       bool (*is_of_nothing)(const void *message))
{
	while (!w->has_kept && receive(w, fd, octets, MSG_PEEK)) {
		if (!is_of_nothing(&w->kept))
			return false;
		w->has_kept = receive(w, fd, octets, 0) && !is_of_nothing(&w->kept);
	}
	return !w->has_kept;
}

void withdrawn_remove(struct withdrawn *w, int fd, size_t octets,
		      bool (*is_of_nothing)(const void *message))
{
	int cancel = cancel_off();

	pthread_mutex_lock(&w->lock);
	/* First, for a thread that takes a message of the socket after we have looked at it. */
	__atomic_store_n(&w->may_wait, true, __ATOMIC_RELAXED);
	if (remove_all(w, fd, octets, is_of_nothing))
		__atomic_store_n(&w->may_wait, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&w->lock);
	cancel_restore(cancel);
}

bool withdrawn_kept(struct withdrawn *w, void *message, size_t octets)
{
	bool has;

	pthread_mutex_lock(&w->lock);
	has = w->has_kept;
	if (has)
		memcpy(message, &w->kept, octets);
	w->has_kept = false;
	pthread_mutex_unlock(&w->lock);
	return has;
}
