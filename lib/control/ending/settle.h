/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What waits for copies of a client's memory: commands that give the program memory back, binds of
 * windows, and the end of a client. A copy may last for as long as a client pleases, so nobody waits
 * under the control lock: the rest of the command is put aside, and done when the copies are over.
 *
 *	command -- copies under way --> parked -- they are over --> finished, answered
 *	                                       \- LIMIT_COPY_WAIT -> the client is ended
 *	end of a client -- likewise --> grave  -- they are over --> freed; never, if they never are
 *
 * An lcore that ends a copy of somebody who is waited for wakes the control thread.
 */
#ifndef CONTROL_SETTLE_H
#define CONTROL_SETTLE_H

#include "lcore/lcore.h"

struct call;
struct connection;
struct parked_call;

/* What is under way when somebody begins to wait: what begins later does not matter. */
struct settling {
	uint64_t newest[LIMIT_LCORES]; /* job of each lcore */
};

/* True: none of the client's copies is under way, nor any of its memory. Control thread. */
bool settle_begin(struct client *c, struct settling *s);
/* Those that were then are over. */
bool settle_over(struct client *c, struct settling *s);

/* A client that has ended, while copies of its memory are under way. */
struct grave {
	struct client *client;
	struct settling settling;
	nanotime since;
	bool old; /* nobody expects it to end soon */
	LIST_ENTRY(grave) link;
};

/*
 * The end of a command: `finish` (NULL: nothing) is called when the client's copies that are under way
 * now are over, at once if none is. If the client goes before that, `abandon` (NULL: nothing) is
 * called instead. Returns what the command is to return. `finish` may set in_slices, if it is not done.
 */
int call_after_copies(struct call *call, int (*finish)(struct call *call),
		      void (*abandon)(struct call *call));

/* A call that waits goes with its connection, whose next message is read after it. False: no memory. */
bool call_park(struct connection *n, const struct call *call);
void call_abandon(struct connection *n);
/* Its slices are over, before copies: it waits for them as with call_after_copies. Or: it is done. */
void call_await_copies(struct connection *n);
void call_done(struct connection *n);
/* For an embedded program, in its own thread: waits, without the lock. */
void call_wait(struct call *call);

/* Nobody serves the client any more. It is freed when its copies are over. */
void client_bury(struct client *c);
/* ending.c: the rest of its end. */
void client_finish(struct client *c);
/* Control thread: goes on with whatever need not wait any more. Returns when to look again. */
nanotime settle_continue(struct engine *e, nanotime now);
/* The engine ends. Waits a moment; what is stuck then stays as it is. False: something is. */
bool graves_close(struct engine *e);

/* Somebody begins to wait, for a moment at least: lcores say when copies are over. And: no more. */
void settle_await(struct engine *e);
void settle_await_no_more(struct engine *e);

#endif
