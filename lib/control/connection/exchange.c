/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and replies of a connection, on its socket. Those in the arena (slots.c) share the rules
 * of when the next one is executed, and how a reply with descriptors is sent. Messages without
 * descriptors are read here. A porter reads those with descriptors (porters.h), and nothing after
 * them is read meanwhile.
 *
 * The kernel limits the number of descriptors that a user may have in sockets where they are not
 * received yet. All engines and programs of the engine's user share that limit. So a connection is
 * not served until its last reply with descriptors was read, and a reply that meets the limit is
 * kept and sent later.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "control/control.h"
#include "control/connection/porters.h"
#include "control/ending/settle.h"

#define OWED_MOST (LIMIT_OWED_S * TIME_S)

struct owed_reply {
	nanotime since;
	struct call call; /* with the reply and its descriptors */
};

static bool is_busy(const struct connection *n)
{
	return n->carried || n->owed != NULL || n->untaken || n->parked != NULL;
}

void connection_go_on(struct connection *n)
{
	bool busy = is_busy(n);

	watch_change(n->engine, &n->socket, busy ? 0 : EPOLLIN);
	if (!busy)
		slots_go_on(n);
}

/* ---- replies ---- */

static int send_reply(int fd, const struct call *call)
{
	struct iovec iov = { (void *)(uintptr_t)call->reply_octets, call->reply_length };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(LIMIT_COMMAND_FDS * sizeof(int))];
	} space;
	ssize_t sent;

	if (call->out.count > 0) {
		size_t octets = call->out.count * sizeof(int);
		struct cmsghdr *c;

		memset(&space, 0, sizeof(space));
		message.msg_control = &space;
		message.msg_controllen = CMSG_SPACE(octets);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(octets);
		memcpy(CMSG_DATA(c), call->out.fd, octets);
	}
	/* A program that does not read its replies is ended; it asked for them. */
	sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	return sent < 0 ? errno : sent == (ssize_t)call->reply_length ? 0 : EPIPE;
}

/* Takes over the reply and its descriptors. */
static bool owe(struct connection *n, struct call *call)
{
	n->owed = malloc(sizeof(*n->owed));
	if (n->owed == NULL)
		return false;
	n->owed->since = clock_now();
	n->owed->call = *call;
	n->owed->call.in.count = 0;
	n->owed->call.memory.sought = false;
	call->out.count = 0;
	return true;
}

void connection_forget_reply(struct connection *n)
{
	if (n->owed == NULL)
		return;
	call_close_descriptors(&n->owed->call);
	free(n->owed);
	n->owed = NULL;
}

static void note_sent(struct connection *n, int error, bool with_descriptors)
{
	if (error != 0)
		return;
	if (with_descriptors)
		n->last_has_descriptors = true;
	if (n->by_slot)
		slots_sent(n);
}

/* False: the caller must end the connection. */
bool connection_answer(struct connection *n, struct call *call)
{
	int error;

	if (n->by_slot && slots_answer(n, call))
		return call->reply.error != EPROTO;
	error = send_reply(n->socket.fd, call);
	if (error == ETOOMANYREFS)
		return owe(n, call);
	note_sent(n, error, call->out.count > 0);
	return error == 0 && call->reply.error != EPROTO;
}

/* Whether the program has read everything that was sent. */
static bool is_taken(const struct connection *n)
{
	int octets = 0;

	return ioctl(n->socket.fd, SIOCOUTQ, &octets) != 0 || octets == 0;
}

bool connection_is_free(struct connection *n)
{
	if (is_busy(n))
		return false;
	n->untaken = n->last_has_descriptors && !is_taken(n);
	n->last_has_descriptors = n->untaken;
	if (n->untaken)
		connection_go_on(n);
	return !n->untaken;
}

void connection_refuse(struct connection *n, int error, const char *why)
{
	uint8_t octets[sizeof(struct command_request)] __attribute__((aligned(8))) = { 0 };
	struct call call = { .engine = n->engine,
			     .request = (const struct command_request *)octets };
	ssize_t got = recv(n->socket.fd, octets, sizeof(octets), MSG_PEEK | MSG_DONTWAIT);

	call.length = got > 0 ? (size_t)got : 0;
	command_refuse(&call, error, why);
	send_reply(n->socket.fd, &call);
	connection_end(n);
}

/* False: the caller must end the connection. */
static bool owed_is_sent(struct connection *n, nanotime now)
{
	int error = send_reply(n->socket.fd, &n->owed->call);

	if (error == ETOOMANYREFS)
		return now - n->owed->since < OWED_MOST;
	note_sent(n, error, true);
	connection_forget_reply(n);
	connection_go_on(n);
	return error == 0;
}

void connections_tick(struct engine *e, nanotime now)
{
	struct connection *n, *next;

	for (n = LIST_FIRST(&e->control->connections); n != NULL; n = next) {
		next = LIST_NEXT(n, link);
		if (n->untaken && is_taken(n)) {
			n->untaken = n->last_has_descriptors = false;
			connection_go_on(n);
		}
		if (n->owed != NULL && !owed_is_sent(n, now))
			connection_end(n);
	}
}

/* ---- requests ---- */

bool connection_execute(struct connection *n, struct call *call)
{
	bool going_on;

	call->client = n->client;
	call->connection = n;
	command_execute(call);
	if (call->finish != NULL)
		return call_park(n, call);
	going_on = connection_answer(n, call);
	call_close_descriptors(call);
	return going_on;
}

void connection_carried(struct connection *n, struct call *call)
{
	if (call->length == 0 || !connection_execute(n, call)) {
		call_close_descriptors(call);
		connection_end(n);
		return;
	}
	connection_go_on(n);
}

/* A porter carries HELLO, too, because it opens the program's memory, which may block. */
static bool is_hello(const struct connection *n, const void *octets, size_t length)
{
	const struct command_request *h = octets;

	return n->client == NULL && length >= sizeof(struct request_hello) &&
	       h->magic == COMMAND_MAGIC && h->version == COMMAND_VERSION &&
	       h->command == COMMAND_HELLO;
}

/*
 * Handles one message, and then sets *more: another one may wait. False: the caller must end the
 * connection.
 */
static bool serve_one(struct connection *n, bool *more)
{
	static_assert(LIMIT_COMMAND_FDS <= 32, "out_borrowed has a bit for each");
	uint8_t octets[LIMIT_COMMAND_BYTES] __attribute__((aligned(8)));
	struct iovec iov = { octets, sizeof(octets) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct call call = { .engine = n->engine };
	bool going_on;
	ssize_t got;

	if (is_busy(n)) {
		connection_go_on(n);
		return true;
	}
	if (!connection_is_free(n))
		return true;
	/* Without room for descriptors: the kernel only says that there are some, and they stay. */
	got = recvmsg(n->socket.fd, &message, MSG_PEEK | MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if ((message.msg_flags & MSG_CTRUNC) != 0 ||
	    (got > 0 && is_hello(n, octets, (size_t)got))) {
		porter_carry(n);
		connection_go_on(n);
		return true;
	}
	if (got == 0 || (message.msg_flags & MSG_TRUNC) != 0)
		return false;
	recv(n->socket.fd, octets, 0, MSG_DONTWAIT);
	call.request = (const struct command_request *)octets;
	call.length = (size_t)got;
	going_on = connection_execute(n, &call);
	if (going_on && n->owed != NULL)
		connection_go_on(n);
	/* A reply with descriptors has just been sent, so the program has no next request yet. */
	*more = n->owed == NULL && n->parked == NULL && !n->last_has_descriptors;
	return going_on;
}

/*
 * A program that shares this thread's processor often goes on as soon as its reply is sent, so its
 * next request is here already. To find it here saves a wait of the control thread. The number of
 * requests in a row is limited, because other programs wait meanwhile.
 */
static bool serve(struct connection *n)
{
	bool going_on = true, more = true;

	for (uint32_t i = 0; i < LIMIT_COMMANDS_IN_A_ROW && going_on && more; i++) {
		more = false;
		going_on = serve_one(n, &more);
	}
	return going_on;
}

void connection_ready(struct watch *w, uint32_t events)
{
	struct connection *n = container_of_type(w, struct connection, socket);
	bool going_on = (events & EPOLLIN) == 0 || n->parked != NULL || serve(n);

	if (!going_on || ((events & (EPOLLHUP | EPOLLERR)) && !(events & EPOLLIN)))
		connection_end(n);
}
