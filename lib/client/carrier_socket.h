/* SPDX-License-Identifier: BSD-3-Clause */
/* The carrier of an attached program: commands over the socket of a uroced, queues in its arena. */
#ifndef CLIENT_CARRIER_SOCKET_H
#define CLIENT_CARRIER_SOCKET_H

#include "protocol/carrier.h"

/* Asks over a connection of its own, which changes nothing in the engine. 0 or an errno. */
int carrier_socket_query(const char *path, struct reply_device *out);

/*
 * Connects, says HELLO and maps the arena. 0 or an errno: EACCES if the path was passed on and
 * somebody listens there who is neither the superuser nor ourselves.
 */
int carrier_socket_attach(const char *path, bool passed_on, struct carrier **out);

/*
 * In the child of a fork: closes the child's copies of the descriptors, so that the engine sees
 * the parent's death. The arena stays mapped (objects of the parent still point into it) and is
 * never touched again. The carrier is gone from then on.
 */
void carrier_socket_abandon(struct carrier *c);

#endif
