/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the engine that a command is for, and asks it. Order: --socket, $UROCE_SOCKET, the system's
 * engine, the user's own engine.
 */
#ifndef APPS_LOCATE_H
#define APPS_LOCATE_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/command.h"

#define SYSTEM_SOCKET "/run/uroce/uroced.sock"

struct engine_place {
	char path[108]; /* of the socket; as long as sockaddr_un allows */
	bool chosen; /* by --socket or $UROCE_SOCKET: no other place is tried */
	bool own; /* the user's own engine, which may exit while no program is attached */
	bool refused; /* there is a system's engine, and this user may not open its socket */
};

/*
 * Finds an engine that answers. Returns 0 and fills `where` and `device`. Otherwise returns an
 * errno; then `where` is the last place tried (the user's own, unless the user chose one), and
 * `why` is one line about the failure there. `chosen` may be NULL.
 */
int engine_locate(const char *chosen, struct engine_place *where, struct reply_device *device,
		  char *why, size_t why_size);

/* Whether an engine answers at this path: 0, or an errno and `why`. */
int engine_try(const char *path, struct reply_device *device, char *why, size_t why_size);

/*
 * The place of the user's own engine. `make`: create the folder (0700). EACCES: others have access
 * to the folder, and `why` says so.
 */
int engine_own_place(bool make, struct engine_place *where, char *why, size_t why_size);

/* Connects, or returns -errno. Sends and receives on the socket have a timeout. */
int engine_connect(const char *path);

/*
 * Sends one command without descriptors on a socket of engine_connect. The caller sets the command
 * and the length of the header; the rest is filled in here. 0 or an errno.
 */
int engine_call(int fd, struct command_request *request, struct command_reply *reply,
		size_t reply_bytes, char *why, size_t why_size);
/*
 * The same for a command whose reply may bring a descriptor: *file, or -1. The caller closes it, also
 * after an error.
 */
int engine_call_for_file(int fd, struct command_request *request, struct command_reply *reply,
			 size_t reply_bytes, int *file, char *why, size_t why_size);
/* engine_call for a command without arguments. */
int engine_ask(int fd, enum command what, struct command_reply *reply, size_t reply_bytes,
	       char *why, size_t why_size);

/* For people: "uroce0 (10.1.0.2, fe80::1), IB MTU 1024". */
void engine_describe(const struct reply_device *device, char *text, size_t size);

/* An address of the device as text; "" for an unused entry. */
const char *address_of_gid(const struct gid *g, char *text, size_t size);

#endif
