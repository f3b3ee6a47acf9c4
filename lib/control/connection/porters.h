/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with descriptors, and sockets that are closed with such messages in them, go to porters
 * (drivers/client_memory/porter.h): the engine never has a client's descriptor that it does not know
 * to be harmless, and never closes the last reference to one. A porter may hang for ever. So a user has
 * few of them at a time, and waits when all of them hang, with his connections; nobody else does.
 */
#ifndef CONTROL_PORTERS_H
#define CONTROL_PORTERS_H

#include "control/control.h"

struct porters; /* of an engine */
struct porter;

/* Before the engine serves its socket. Without porters no descriptors are taken. 0 or an errno. */
int porters_open(struct engine *e);
/* Sockets that could not be given away end with the process. */
void porters_close(struct engine *e);

/*
 * The message that waits at the connection is one with descriptors. Nothing is read from there until
 * connection_carried() is called with it, or the connection has ended.
 */
void porter_carry(struct connection *n);
/* The connection goes: nobody is to be told what its porter brings. */
void porter_forget(struct connection *n);
/* Ends a client's socket. */
void porter_drop(struct engine *e, int socket, uid_t uid);
/* Now and then: whoever waits for a porter tries again. */
void porters_tick(struct engine *e, nanotime now);

/* How many there are, but for those that keep a file. */
uint32_t porters_busy(const struct engine *e);

/*
 * The porter that brought this call keeps the file that it described until the descriptor that is
 * returned is closed; -1: the user has as many of those as he may.
 */
int porter_keep(struct call *call);

#endif
