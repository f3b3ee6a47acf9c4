/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams that were received and not read yet. There is memory for as many of them as there are
 * receive requests. It is allocated with the first queue pair. As with UDP, a datagram that finds
 * no room is dropped, so no peer can make the process allocate memory.
 */
#include <stdlib.h>

#include "rdmacm/rsockets/rs_datagram.h"

int rs_inbox_open(struct rs_socket *s)
{
	struct rs_datagrams *t = &s->datagrams;
	uint32_t places = s->sizes.receive_queue;

	if (t->places != NULL)
		return 0;
	t->places = calloc(places, sizeof(t->places[0]));
	if (t->places == NULL)
		return ENOMEM;
	for (uint32_t i = 0; i < places; i++) {
		t->places[i].next = t->spare;
		t->spare = &t->places[i];
	}
	return 0;
}

void rs_inbox_close(struct rs_socket *s)
{
	free(s->datagrams.places);
}

void rs_deliver(struct rs_socket *s, const struct sockaddr_storage *source, const void *octets,
		size_t length)
{
	struct rs_datagrams *t = &s->datagrams;
	struct rs_datagram *d = t->spare;

	if (d == NULL || !s->readable || length > sizeof(d->octets))
		return;
	t->spare = d->next;
	d->next = NULL;
	d->source = *source;
	d->length = (uint32_t)length;
	memcpy(d->octets, octets, length);
	*t->end = d;
	t->end = &d->next;
	rs_wake(s);
}

/* Takes the first datagram. The result is valid until the lock is released. */
static const struct rs_datagram *take_first(struct rs_socket *s)
{
	struct rs_datagrams *t = &s->datagrams;
	struct rs_datagram *d = t->first;

	t->first = d->next;
	if (t->first == NULL)
		t->end = &t->first;
	d->next = t->spare;
	t->spare = d;
	return d;
}

bool rs_datagram_waits(struct rs_socket *s)
{
	return s->datagrams.first != NULL;
}

static bool waits_or_gone(struct rs_socket *s)
{
	return rs_datagram_waits(s) || !s->readable || s->datagrams.broken != 0 || s->error != 0;
}

static ssize_t receive_locked(struct rs_socket *s, struct rs_cursor *c, size_t room, int flags,
			      struct sockaddr *from, socklen_t *from_length, int *message_flags)
{
	int error = rs_wait(s, waits_or_gone, rs_must_not_wait(s, flags));
	const struct rs_datagram *d;
	size_t n;

	if (error == 0 && s->closed)
		error = EBADF;
	if (error != 0)
		return result(error);
	if (!rs_datagram_waits(s)) { /* after rshutdown(), or there is an error */
		error = rs_take_error(s);
		return s->readable ? result(error != 0 ? error : s->datagrams.broken) : 0;
	}
	d = (flags & MSG_PEEK) ? s->datagrams.first : take_first(s);
	n = MIN_OF(room, d->length);
	rs_copy_to(c, d->octets, n);
	if (from != NULL)
		rs_copy_address(&d->source, from, from_length);
	*message_flags = n < d->length ? MSG_TRUNC : 0;
	return (ssize_t)((flags & MSG_TRUNC) ? d->length : n);
}

ssize_t rs_datagram_receive(struct rs_socket *s, const struct iovec *iov, size_t count, int flags,
			    struct sockaddr *from, socklen_t *from_length, int *message_flags)
{
	struct rs_cursor c = { .iov = iov, .count = (int)count };
	ssize_t room = rs_iov_length(iov, count), received;

	if (room < 0)
		return result(EINVAL);
	rs_direction_begin(&s->receive_lock);
	pthread_mutex_lock(&s->lock);
	received = receive_locked(s, &c, (size_t)room, flags, from, from_length, message_flags);
	pthread_mutex_unlock(&s->lock);
	rs_direction_end();
	return received;
}
