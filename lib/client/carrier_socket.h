/* SPDX-License-Identifier: BSD-3-Clause */
/* The carrier of an attached program: commands over the socket of a uroced, queues in its arena. */
#ifndef CLIENT_CARRIER_SOCKET_H
#define CLIENT_CARRIER_SOCKET_H

#include "protocol/carrier.h"

/*
 * Asks for the facts of the engine's device over a connection of its own. Attaches nothing. 0 or an
 * errno. Any thread.
 */
int carrier_socket_query(const char *path, struct reply_device *out);

/*
 * Connects, says HELLO and maps the arena; *out is the caller's, to be given back with
 * out->ops->release. 0 or an errno. EACCES: the path was passed on, and the listener there is
 * neither root nor this user.
 */
int carrier_socket_attach(const char *path, bool passed_on, struct carrier **out);

/*
 * Called in the child of a fork. Closes the child's copies of the descriptors, so that the engine
 * sees the parent's death. The arena stays mapped, because the parent's objects still point into
 * it, but is never accessed again. The carrier reports gone from then on.
 */
void carrier_socket_abandon(struct carrier *c);

#endif
