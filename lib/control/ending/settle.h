/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for copies of a client's memory: commands that give the program memory back, binds of
 * windows, and the end of a client do so. A client can make a copy last as long as it likes, so
 * no command waits under the control lock: the rest of the command is parked, and done when the
 * copies are over.
 *
 *	command -- copies under way --> parked -- they are over --> finished, answered
 *	                                       \- LIMIT_COPY_WAIT -> the client is detached
 *	end of a client -- likewise --> grave  -- they are over --> freed; never, if they never are
 *
 * An lcore that ends such a copy wakes the control thread if a command waits.
 *
 * A command that destroys what is posted waits, LEAVE_TIME at most, until that has left. It is parked
 * likewise, and looks again every now and then.
 */
#ifndef CONTROL_SETTLE_H
#define CONTROL_SETTLE_H

#include "lcore/lcore.h"

struct call;
struct connection;
struct parked_call;

/* The copies under way when a wait begins; later ones do not matter. */
struct settling {
	uint64_t newest[LIMIT_LCORES]; /* number of the newest job, for each lcore */
};

/* Begins a wait. True: no copy by the client or of its memory is under way. Control thread. */
bool settle_begin(struct client *c, struct settling *s);
/* True: the copies that were under way at settle_begin() are over. */
bool settle_over(struct client *c, struct settling *s);

/* A client that has ended while copies of its memory are under way. */
struct grave {
	struct client *client;
	struct settling settling;
	nanotime since;
	bool old; /* not expected to end soon */
	LIST_ENTRY(grave) link;
};

/*
 * The end of a command: calls `finish` (NULL: nothing) when the client's copies that are under way
 * now are over, or at once if there are none. If the client ends before, it calls `abandon` (NULL:
 * nothing) instead. Returns what the command is to return. `finish` may set in_slices if it is not
 * done.
 */
int call_after_copies(struct call *call, int (*finish)(struct call *call),
		      void (*abandon)(struct call *call));

/*
 * The end of a command that waits until posted requests have left: calls `again` (the command's own
 * function) some time later, which looks once more. Between two looks no thread waits for it.
 * Returns what the command is to return.
 */
int call_after_leaving(struct call *call, int (*again)(struct call *call));
/* The first look: the wait may last this long, and take this many turns of an lcore. */
void call_begin_leaving(struct call *call, uint32_t turns);

/*
 * A waiting call belongs to its connection, whose next message is read after it. False: no memory.
 */
bool call_park(struct connection *n, const struct call *call);
void call_abandon(struct connection *n);
/*
 * The slices before the copies are done: waits for copies as call_after_copies() does. call_done:
 * the call is done.
 */
void call_await_copies(struct connection *n);
void call_done(struct connection *n);
/* For an embedding program, in its own thread: waits without the lock. */
void call_wait(struct call *call);

/* The client is not served any more. Frees it when its copies are over. */
void client_bury(struct client *c);
/* ending.c: the rest of its end. */
void client_finish(struct client *c);
/* Control thread: continues what need not wait any more. Returns when to call again. */
nanotime settle_continue(struct engine *e, nanotime now);
/*
 * The engine ends: waits for a limited time. False: copies still hang, and their clients are not
 * freed.
 */
bool graves_close(struct engine *e);

/* A wait begins: lcores report when copies are over. settle_await_no_more: it has ended. */
void settle_await(struct engine *e);
void settle_await_no_more(struct engine *e);

#endif
