/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands in the arena (queue/command_slot.h), which cost a program and the engine about half of
 * what they cost on the socket. A reply with descriptors still goes over the socket.
 *
 * The eventfd is watched for edges and never read, so a program that writes to it without a request
 * costs what a message on the socket costs.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "control/control.h"
#include "queue/command_slot.h"

#define EDGES ((uint32_t)EPOLLIN | (uint32_t)EPOLLET)

static struct command_slot *current(const struct connection *n)
{
	return &n->slots->slot[n->slot % LIMIT_COMMAND_SLOTS];
}

/* The memory is shared, so the futex is not a private one. */
static void wake(struct command_slot *s)
{
	syscall(SYS_futex, &s->state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void finish(struct connection *n, bool is_awaited)
{
	if (is_awaited)
		wake(current(n));
	n->slot++;
	n->by_slot = false;
}

bool slots_answer(struct connection *n, const struct call *call)
{
	if (call->out.count > 0)
		return false;
	finish(n, slot_answer(current(n), call->reply_octets, call->reply_length));
	return true;
}

void slots_sent(struct connection *n)
{
	finish(n, slot_finish(current(n), SLOT_ON_SOCKET));
}

/* False: the caller must end the connection. */
static bool serve_one(struct connection *n)
{
	uint8_t octets[LIMIT_COMMAND_BYTES] __attribute__((aligned(8)));
	struct call call = { .engine = n->engine };

	call.length = slot_take(current(n), octets);
	if (call.length > sizeof(octets))
		return false;
	call.request = (const struct command_request *)octets;
	n->by_slot = true;
	return connection_execute(n, &call);
}

static bool waits(const struct connection *n)
{
	return n->slots != NULL && slot_has_request(current(n));
}

/* More requests than LIMIT_COMMANDS_IN_A_ROW wait for the next round, as those on a socket do. */
static void rung(struct watch *w, uint32_t events)
{
	struct connection *n = container_of_type(w, struct connection, doorbell);

	(void)events;
	for (uint32_t i = 0; i < LIMIT_COMMANDS_IN_A_ROW; i++) {
		if (!waits(n) || !connection_is_free(n))
			return;
		if (!serve_one(n)) {
			connection_end(n);
			return;
		}
	}
	slots_go_on(n);
}

/* The eventfd stays readable once it was written, so watching it anew brings another edge. */
void slots_go_on(struct connection *n)
{
	if (waits(n))
		watch_change(n->engine, &n->doorbell, EDGES);
}

int slots_open(struct connection *n, struct client *c)
{
	uint64_t offset = arena_allocate(c->arena, sizeof(*n->slots));
	int error;

	if (offset == 0)
		return ENOMEM;
	n->doorbell.ready = rung;
	n->doorbell.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (n->doorbell.fd < 0)
		return errno;
	error = watch_add(n->engine, &n->doorbell);
	if (error != 0)
		return error;
	watch_change(n->engine, &n->doorbell, EDGES);
	c->objects->slots_offset = offset;
	n->slots = arena_at(c->arena, offset);
	n->slot = 0;
	return 0;
}

void slots_close(struct connection *n)
{
	watch_remove(n->engine, &n->doorbell);
	for (uint32_t i = 0; n->slots != NULL && i < LIMIT_COMMAND_SLOTS; i++)
		if (slot_finish(&n->slots->slot[i], SLOT_ENDED))
			wake(&n->slots->slot[i]);
	n->slots = NULL;
}
