/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the store, each with a connection and a thread. */
#ifndef SESSION_H
#define SESSION_H

/*
 * A descriptor of SIGTERM and SIGINT, which all threads that are made from now on block. Call it
 * before any other thread is there.
 */
int sessions_signals(void);
/* Accepts clients until a signal comes. Returns the exit status. */
int sessions_serve(int signals);

#endif
