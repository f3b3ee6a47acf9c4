/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How lib/verbs reaches an engine: over the socket of a uroced (carrier_socket), or by direct call
 * when the engine lives in the same process (carrier_direct, registered by liburoce through
 * uroce_register_carrier of the private version node UROCE_PRIVATE_1). Both give the same queues
 * in an arena and take the same commands; only this struct differs.
 */
#ifndef PROTOCOL_CARRIER_H
#define PROTOCOL_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/command.h"
#include "queue/arena.h"

struct rte_ring;
struct carrier;

struct carrier_descriptors {
	uint32_t count;
	int fd[LIMIT_COMMAND_FDS]; /* owned by who receives them */
};

struct carrier_ops {
	/*
	 * Sends one command and waits for its reply. Fills request->h but for nothing else. Returns 0
	 * or a positive errno: the engine's answer, or ENODEV when the engine is gone (gone() then says
	 * so: an engine answers ENODEV, too). `in` stays the caller's, `out` becomes the caller's; both
	 * may be NULL. Any thread.
	 */
	int (*command)(struct carrier *c, enum command what, struct command_request *request,
		       size_t request_bytes, struct command_reply *reply, size_t reply_bytes,
		       const struct carrier_descriptors *in, struct carrier_descriptors *out);
	/* Called with an empty poll of a CQ: lets the engine run if it shares this thread or core. */
	void (*empty_poll)(struct carrier *c);
	/* True once the engine is known to be gone; cheap, any thread. */
	bool (*gone)(struct carrier *c);
	/* A descriptor whose other end the engine holds has ended: so has the engine. NULL: cannot be. */
	void (*ended)(struct carrier *c);
	/* Last user gone. */
	void (*release)(struct carrier *c);
};

struct carrier {
	const struct carrier_ops *ops;
	void *arena; /* where this side maps it */
	struct client_page *page;
	uint32_t client;
	uint32_t lcores;
	struct rte_ring *bell[LIMIT_LCORES];
	int wake_fd[LIMIT_LCORES]; /* eventfds */
	uint64_t engine_id;
	bool embedded; /* the engine reads this address space: all memory is direct */
};

/* liburoce registers its engines as further devices. Returns 0, or EEXIST for a name in use. */
struct carrier_device {
	const char *name; /* "uroce0" */
	int (*device)(void *engine, struct reply_device *out);
	int (*attach)(void *engine, struct carrier **out); /* first object of the process */
	void *engine;
};

int uroce_register_carrier(const struct carrier_device *device);
int uroce_unregister_carrier(const char *name);

#endif
