/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Porters handle messages with descriptors, and sockets that are closed with such messages in them
 * (drivers/client_memory/porter.h). The engine never receives a client's descriptor that may be
 * harmful, and never closes the last reference to one. A porter may hang for ever. So a user has
 * few of them at a time; if they all hang, the connections of that user wait, and no others.
 */
#ifndef CONTROL_PORTERS_H
#define CONTROL_PORTERS_H

#include "control/control.h"

struct porters; /* all porters of an engine */
struct porter;

/*
 * Called before the engine serves its socket. Without porters no descriptors are received. 0 or an
 * errno.
 */
int porters_open(struct engine *e);
/* Sockets that could not be given away end with the process. */
void porters_close(struct engine *e);

/*
 * The message that waits at the connection has descriptors. Nothing is read there until
 * connection_carried() is called with it, or the connection has ended.
 */
void porter_carry(struct connection *n);
/* The connection ends: what its porter brings is discarded. */
void porter_forget(struct connection *n);
/* Closes a client's socket. */
void porter_drop(struct engine *e, int socket, uid_t uid);
/* Called at intervals: retries requests for porters. */
void porters_tick(struct engine *e, nanotime now);

/* The number of porters, without those that keep a file. */
uint32_t porters_busy(const struct engine *e);

/*
 * The porter that brought this call keeps the file that it described, until the returned descriptor
 * is closed. -1: the user has reached the limit of such files.
 */
int porter_keep(struct call *call);

#endif
