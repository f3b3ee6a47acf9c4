/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that waits for the engine sleeps in a futex. The engine wakes it with the reply, and when
 * it ends the connection. An engine that was killed wakes nobody, so the thread looks at the socket
 * now and then.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "client/slots.h"

#define LOOK_EVERY (100 * TIME_MS) /* at the socket */

static nanotime now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (nanotime)t.tv_sec * TIME_S + (nanotime)t.tv_nsec;
}

/* Until the state is another one, a signal has come, or it is time to look at the socket. */
static void sleep_while_awaited(const struct command_slot *slot)
{
	const struct timespec wait = { .tv_nsec = LOOK_EVERY };

	syscall(SYS_futex, &slot->state, FUTEX_WAIT, SLOT_AWAITED, &wait, NULL, 0);
}

/* Until the engine has executed the command in the slot. 0, ENODEV or ETIMEDOUT. */
static int await(const struct slots *s, struct command_slot *slot)
{
	nanotime begin = 0;

	for (;;) {
		slot_await(slot);
		if (!slot_has_request(slot))
			return slot_state(slot) == SLOT_ENDED ? ENODEV : 0;
		if (begin == 0)
			begin = now();
		else if (s->ended(s->argument))
			return ENODEV;
		else if (now() - begin > LIMIT_COMMAND_WAIT * TIME_MS)
			return ETIMEDOUT;
		sleep_while_awaited(slot);
	}
}

static struct command_slot *slot_at(const struct slots *s, uint32_t n)
{
	return &s->shared->slot[n % LIMIT_COMMAND_SLOTS];
}

int slots_put(struct slots *s, const struct command_request *request, size_t octets,
	      enum slot_state state)
{
	struct command_slot *slot = slot_at(s, s->next);
	const uint64_t one = 1;
	int error = await(s, slot);
	ssize_t n;

	if (error != 0)
		return error;
	slot_fill(slot, request, octets, state);
	s->next++;
	do {
		n = write(s->bell, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	return 0;
}

ssize_t slots_receive(struct slots *s, struct command_reply *reply, size_t octets)
{
	struct command_slot *slot = slot_at(s, s->next - 1);
	int error = await(s, slot);

	if (error != 0)
		return -error;
	if (slot_state(slot) == SLOT_ON_SOCKET)
		return -EAGAIN;
	return (ssize_t)slot_reply(slot, reply, octets);
}

int slots_drain(struct slots *s)
{
	return await(s, slot_at(s, s->next - 1));
}
