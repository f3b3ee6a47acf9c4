/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs: their sockets, the processes behind them, and what the engine has of each. */
#ifndef CONTROL_CONNECTION_H
#define CONTROL_CONNECTION_H

#include "control/call.h"
#include "control/watch.h"
#include "engine/uroce.h"

/* raw_policy.c: it may do what a packet socket may. */
bool client_is_privileged(const struct client *c);
/* ... or what takes this capability (its bit). */
bool client_has_capability(const struct client *c, uint32_t bit);

/* Room for one more client with everything but its memory; takes the arena. NULL: *error says why. */
struct client *client_create(struct engine *e, struct arena *arena, uid_t uid, bool embedded,
			     int *error);
/* Shows the client to the lcores. */
void client_start(struct client *c);
/* client.c: nothing leads to it any more. */
void client_free(struct client *c);

/* ending.c. Takes everything of it away, whatever it was doing, in slices of the control thread's. */
void client_end(struct client *c);
/* ... in the caller's thread, which gives control_lock to others between slices. */
void client_leave(struct client *c);
/*
 * All that is in the context, and the context: what the command returns. A call of a connection is
 * parked where one slice does not do, an embedded program's is done at once.
 */
int context_end(struct call *call, struct context *x);
/* A slice of those that are ending. Returns when the next one is due. */
nanotime clients_go_on(struct engine *e, nanotime now);
/* All of them, but for those that wait for copies. */
void clients_close(struct engine *e);
/*
 * movers.c. A client of another user gets a mover at once, one of our own user with its first region
 * that we cannot map: and so do all whose queue pairs may name that region. 0 or an errno.
 */
int client_mover_give(struct client *c);
/* The client has come to share a domain: if one of those that share has a mover, all have. */
int client_movers_share(struct client *c);
/*
 * Memory of this client that the engine maps is about to go (the region's; NULL: all of it). Nobody
 * can reach it by a key any more, since a grace period; movers may be on the way there, or stuck in
 * front of it: from now on none of them touches it.
 */
void client_memory_revoke(struct client *c, const struct region *region);

/* ibv_event_type, of the port */
enum port_event {
	EVENT_PORT_ACTIVE = 9,
	EVENT_PORT_ERR = 10,
	EVENT_GID_CHANGE = 18,
};

/* Tells every context. One whose program reads no events hears of it when it does. */
void client_event(struct client *c, enum port_event event);
/* ... as qp_tell_owed. */
void context_tell_owed(struct context *x, struct owed_round *round);

struct listener;
struct owed_reply;
struct porter;

struct connection {
	struct watch socket; /* first */
	struct watch process; /* pidfd; fd -1: none */
	struct engine *engine;
	struct client *client; /* NULL: before HELLO */
	pid_t pid; /* of the process that connected, as we see it; 0: of another pid namespace */
	struct parked_call *parked; /* a command that waits for copies; NULL: none */
	LIST_ENTRY(connection) parked_link;
	uid_t uid;
	bool proven; /* the client's memory is that process's */
	bool carried; /* its message is a porter's business: it is not read */
	nanotime carried_since;
	struct porter *porter; /* NULL: it waits for one */
	bool last_has_descriptors; /* the last reply */
	bool untaken; /* ... and it waits until that was taken */
	struct owed_reply *owed; /* that could not be sent; NULL: none */
	struct user *user;
	LIST_ENTRY(connection) link;
};

/* Sends the reply of a call. False: the connection is to be ended. */
bool connection_answer(struct connection *n, struct call *call);

void connection_accept(struct watch *listener, uint32_t events);
void connection_end(struct connection *n);
/* Its porter brings the message, or, with 0 octets, the end. */
void connection_carried(struct connection *n, struct call *call);
/* Ends it; the message that waits there is answered so. */
void connection_refuse(struct connection *n, int error, const char *why);
/* exchange.c: its socket is readable, or has ended. */
void connection_ready(struct watch *socket, uint32_t events);
/* The reply that it is owed, if any, goes with it. */
void connection_forget_reply(struct connection *n);
/* Ends those that wait to be accepted. */
void connections_decline(struct listener *l);
/* Now and then: replies that could not be sent, or were not taken. */
void connections_tick(struct engine *e, nanotime now);

/* ---- the socket ---- */

struct listener {
	struct watch watch; /* first; fd -1: none */
	struct engine *engine;
	int lock_fd;
	int files_fd; /* the folder of the device's files; -1: none */
	bool files_late; /* there was no descriptor to write them with */
	char path[108];
	bool shown;
	bool paused; /* out of descriptors: looked at again with the next tick */
};

/* 0, or an errno and one line in `why`: who holds the socket, what to do. */
int listener_open(struct listener *l, const struct uroce_options *o, char *why, size_t why_size);
/* The socket appears in place. */
int listener_show(struct listener *l, char *why, size_t why_size);
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);
void listener_close(struct listener *l);

#endif
