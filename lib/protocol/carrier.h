/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How lib/verbs reaches an engine: over a uroced's socket (carrier_socket), or by direct call if
 * the engine lives in the same process (carrier_direct). liburoce registers the latter through
 * uroce_register_carrier, in the private version node UROCE_PRIVATE_1. Both offer the same queues
 * in an arena and take the same commands; they differ in this struct only.
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
	int fd[LIMIT_COMMAND_FDS]; /* owned by the receiver */
};

struct carrier_ops {
	/*
	 * Sends one command and waits for its reply. Fills in request->h; the caller has filled in
	 * the rest. Returns 0 or a positive errno: the engine's answer, or ENODEV if the engine is
	 * gone. An engine may answer ENODEV, too: gone() tells the two apart. `in` stays the
	 * caller's, `out` becomes the caller's; both may be NULL. Any thread.
	 */
	int (*command)(struct carrier *c, enum command what, struct command_request *request,
		       size_t request_bytes, struct command_reply *reply, size_t reply_bytes,
		       const struct carrier_descriptors *in, struct carrier_descriptors *out);
	/*
	 * Called after an empty poll of a CQ: lets the engine run if it shares this thread or core.
	 */
	void (*empty_poll)(struct carrier *c);
	/* True once the engine is known to be gone. Cheap. Any thread. */
	bool (*gone)(struct carrier *c);
	/*
	 * A descriptor whose other end the engine held has reached EOF, so the engine is gone.
	 * NULL: impossible.
	 */
	void (*ended)(struct carrier *c);
	/* The last user is gone. */
	void (*release)(struct carrier *c);
};

struct carrier {
	const struct carrier_ops *ops;
	void *arena; /* mapped in this process */
	struct client_page *page;
	uint32_t client;
	uint32_t lcores;
	struct rte_ring *bell[LIMIT_LCORES];
	int wake_fd[LIMIT_LCORES]; /* eventfds */
	uint64_t engine_id;
	bool embedded; /* the engine shares this address space: all memory is direct */
};

/* liburoce adds its engines to the list of devices. Returns 0, or EEXIST if the name is taken. */
struct carrier_device {
	const char *name; /* "uroce0" */
	int (*device)(void *engine, struct reply_device *out);
	int (*attach)(void *engine, struct carrier **out); /* its first use in the process */
	void *engine;
};

int uroce_register_carrier(const struct carrier_device *device);
int uroce_unregister_carrier(const char *name);

#endif
