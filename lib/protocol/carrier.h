/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How lib/verbs reaches an engine. There are two carriers:
 *
 *	carrier_socket	the socket of a uroced
 *	carrier_direct	direct calls, for an engine in the same process; liburoce registers it with
 *			uroce_register_carrier (version node UROCE_PRIVATE_1)
 *
 * Both take the same commands and provide the same queues in an arena.
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
	int fd[LIMIT_COMMAND_FDS]; /* the receiver owns them */
};

struct carrier_ops {
	/*
	 * Sends one command and waits for its reply. The carrier fills in request->h. Returns 0 or
	 * a positive errno: the engine's answer, or ENODEV when the engine is gone. An engine may
	 * answer ENODEV itself; gone() tells the two apart. The caller keeps the descriptors `in`
	 * and becomes the owner of `out`. Both may be NULL. Any thread.
	 */
	int (*command)(struct carrier *c, enum command what, struct command_request *request,
		       size_t request_bytes, struct command_reply *reply, size_t reply_bytes,
		       const struct carrier_descriptors *in, struct carrier_descriptors *out);
	/*
	 * Sends one command and does not wait. The engine executes it before the next one; nobody
	 * learns its answer. Returns 0, ENODEV when the engine is gone, or ETIMEDOUT, and then it
	 * was not sent. Any thread.
	 */
	int (*post)(struct carrier *c, enum command what, struct command_request *request,
		    size_t request_bytes);
	/*
	 * Called when a poll finds a CQ empty. An engine that shares this thread or core can run
	 * then.
	 */
	void (*empty_poll)(struct carrier *c);
	/* True once the engine is known to be gone. Cheap. Any thread. */
	bool (*gone)(struct carrier *c);
	/*
	 * An event descriptor has reached end of file, so the engine is gone. NULL if that cannot
	 * happen.
	 */
	void (*ended)(struct carrier *c);
	/* Frees the carrier. Called when its last user is gone. */
	void (*release)(struct carrier *c);
};

struct carrier {
	const struct carrier_ops *ops;
	void *arena; /* the arena, as this process maps it */
	struct client_page *page;
	uint32_t client; /* the engine's number for this process */
	uint32_t lcores;
	struct rte_ring *bell[LIMIT_LCORES];
	int wake_fd[LIMIT_LCORES]; /* eventfds */
	uint64_t engine_id;
	bool embedded; /* the engine runs in this process and reads all of its memory directly */
};

/* A device of an engine in this process. */
struct carrier_device {
	const char *name; /* "uroce0" */
	int (*device)(void *engine, struct reply_device *out);
	int (*attach)(void *engine, struct carrier **out); /* called for the first context */
	void *engine;
};

/*
 * Registers an engine of liburoce. Copies *device. Returns 0, EEXIST if the name is in use, or
 * ENOSPC.
 */
int uroce_register_carrier(const struct carrier_device *device);
/* Returns 0 or ENOENT. */
int uroce_unregister_carrier(const char *name);

#endif
