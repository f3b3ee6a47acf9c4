/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of this program in the arena (queue/command_slot.h): its side. */
#ifndef CLIENT_SLOTS_H
#define CLIENT_SLOTS_H

#include <stdbool.h>

#include "protocol/carrier.h"
#include "queue/command_slot.h"

/* The caller sees to it that one thread at a time uses it. */
struct slots {
	struct command_slots *shared;
	int bell; /* the engine's eventfd; -1: none */
	uint32_t next; /* slot of the next command, modulo LIMIT_COMMAND_SLOTS */
	/* Whether the engine is gone. Asked now and then while a thread waits. */
	bool (*ended)(void *argument);
	void *argument;
};

/*
 * Puts a command, whose header is filled in, into the next slot, and rings. `state`: SLOT_AWAITED
 * or SLOT_POSTED. Waits if all slots are taken. 0, ENODEV or ETIMEDOUT, and then nothing was put.
 */
int slots_put(struct slots *s, const struct command_request *request, size_t octets,
	      enum slot_state state);
/*
 * Waits for the reply to the command that was put last, and copies it. Returns its octets, or a
 * negative errno: ENODEV, ETIMEDOUT; -EAGAIN: the reply comes over the socket.
 */
ssize_t slots_receive(struct slots *s, struct command_reply *reply, size_t octets);
/* Waits until the engine has executed all posted commands. 0, ENODEV or ETIMEDOUT. */
int slots_drain(struct slots *s);

#endif
