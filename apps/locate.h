/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which engine a command means, and asking it. The order: --socket, $UROCE_SOCKET, the system's
 * engine, the user's own.
 */
#ifndef APPS_LOCATE_H
#define APPS_LOCATE_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/command.h"

struct engine_place {
	char path[108]; /* of the socket; what sockaddr_un holds */
	bool chosen; /* by --socket or $UROCE_SOCKET: nothing else is tried */
	bool own; /* the user's own, which may end when nobody is connected */
};

/*
 * Finds an engine that answers. Returns 0 and fills `where` and `device`, or an errno: then
 * `where` is the last place looked at (the user's own, unless the user chose one) and `why` says
 * in one line what is wrong with it. `chosen` may be NULL.
 */
int engine_locate(const char *chosen, struct engine_place *where, struct reply_device *device,
		  char *why, size_t why_size);

/* Whether an engine answers at this path: 0, or an errno and `why`. */
int engine_try(const char *path, struct reply_device *device, char *why, size_t why_size);

/*
 * The place of the user's own engine. With `make` the folder is made (0700). EACCES: the folder
 * is not only the user's, and `why` says so.
 */
int engine_own_place(bool make, struct engine_place *where, char *why, size_t why_size);

/* Connects, or returns -errno. Every send and receive on it is bounded. */
int engine_connect(const char *path);

/*
 * One command without descriptors over a socket of engine_connect; its header, but for the number
 * and the length, is filled in here. 0 or an errno.
 */
int engine_call(int fd, struct command_request *request, struct command_reply *reply,
		size_t reply_bytes, char *why, size_t why_size);
/* ... that says nothing but what it is. */
int engine_ask(int fd, enum command what, struct command_reply *reply, size_t reply_bytes,
	       char *why, size_t why_size);

/* "uroce0 (10.1.0.2, fe80::1), IB MTU 1024" for people. */
void engine_describe(const struct reply_device *device, char *text, size_t size);

/* An address of the device as text; "" for a free entry. */
const char *gid_text(const struct gid *g, char *text, size_t size);

#endif
