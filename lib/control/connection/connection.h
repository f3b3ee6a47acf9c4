/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs: their sockets, their processes, and what the engine knows of each. */
#ifndef CONTROL_CONNECTION_H
#define CONTROL_CONNECTION_H

#include "control/call.h"
#include "control/watch.h"
#include "engine/uroce.h"

/* raw_policy.c: the client may do what a packet socket may do. */
bool client_is_privileged(const struct client *c);
/* ... or what needs this capability (its bit). */
bool client_has_capability(const struct client *c, uint32_t bit);

/* Creates a client without its memory and takes the arena over. NULL: *error says why. */
struct client *client_create(struct engine *e, struct arena *arena, uid_t uid, bool embedded,
			     int *error);
/* Makes the client visible to the lcores. */
void client_start(struct client *c);
/* client.c: frees a client that nothing refers to. */
void client_free(struct client *c);

/* ending.c. Takes the client apart, whatever it was doing, in slices of the control thread. */
void client_end(struct client *c);
/* ... in the caller's thread, which releases control_lock between slices. */
void client_leave(struct client *c);
/*
 * Frees everything in the context, and the context. Returns what the command is to return. A call
 * of a connection is parked if one slice is not enough; an embedding program's is completed at
 * once.
 */
int context_end(struct call *call, struct context *x);
/* One slice of the clients that are ending. Returns when the next one is due. */
nanotime clients_go_on(struct engine *e, nanotime now);
/* Finishes them all, except those that wait for copies. */
void clients_close(struct engine *e);
/*
 * movers.c. Gives the client a mover, and all clients whose queue pairs may name its regions: a
 * client of another user at once, one of the engine's user with its first unmappable region. 0 or
 * an errno.
 */
int client_mover_give(struct client *c);
/* The client now shares a domain: if one of the sharers has a mover, all of them get one. */
int client_movers_share(struct client *c);
/*
 * Memory of this client that the engine maps is about to be unmapped (the region's; NULL: all of
 * it). No key has led to it since a grace period. Movers may still have copies of it to make: after
 * this they do not.
 */
void client_memory_revoke(struct client *c, const struct region *region);
/*
 * The client's memory in its promoted file has been peer memory since a grace period. Movers may
 * still have copies of it to make: after this they make them like copies of peer memory.
 */
void client_memory_leave(struct client *c);

/* the ibv_event_type values of the port */
enum port_event {
	EVENT_PORT_ACTIVE = 9,
	EVENT_PORT_ERR = 10,
	EVENT_GID_CHANGE = 18,
};

/* Reports to every context. A program that does not read its events gets it later. */
void client_event(struct client *c, enum port_event event);
/* ... as qp_tell_owed. */
void context_tell_owed(struct context *x, struct owed_round *round);

struct listener;
struct owed_reply;
struct porter;

struct connection {
	struct watch socket; /* first */
	struct watch doorbell; /* of the slots; fd -1: before HELLO */
	struct command_slots *slots;
	uint32_t slot; /* the next one that is executed, modulo LIMIT_COMMAND_SLOTS */
	bool by_slot; /* the command under way came in it */
	struct watch process; /* pidfd; fd -1: none */
	struct engine *engine;
	struct client *client; /* NULL: before HELLO */
	pid_t pid; /* of the process that connected; 0: in another pid namespace */
	struct parked_call *parked; /* a command that waits for copies; NULL: none */
	LIST_ENTRY(connection) parked_link;
	uid_t uid;
	bool known; /* the pid belongs to the process that connected, not to a later one */
	bool proven; /* the client's memory is that process's */
	bool carried; /* a porter carries its message: the socket is not read */
	nanotime carried_at; /* since when, */
	nanotime carried_since; /* and since when no porter of its user has gone on */
	TAILQ_ENTRY(connection) carried_link;
	struct porter *porter; /* NULL: it waits for one */
	bool last_has_descriptors; /* whether the last reply had some */
	bool untaken; /* the last reply has not been read yet */
	struct owed_reply *owed; /* a reply that could not be sent; NULL: none */
	struct user *user;
	LIST_ENTRY(connection) link;
};

/* Sends the reply of a call. False: the caller must end the connection. */
bool connection_answer(struct connection *n, struct call *call);

void connection_accept(struct watch *listener, uint32_t events);
void connection_end(struct connection *n);
/* A porter brings the message, or with 0 octets the end of the connection. */
void connection_carried(struct connection *n, struct call *call);
/* Answers the message that waits there with the error, and ends the connection. */
void connection_refuse(struct connection *n, int error, const char *why);
/* exchange.c: the socket is readable, or has ended. */
void connection_ready(struct watch *socket, uint32_t events);
/* Whether another command may be executed now. If not, connection_go_on is called later. */
bool connection_is_free(struct connection *n);
/* Something that the connection waited for is over, or has begun. */
void connection_go_on(struct connection *n);
/*
 * Executes a command from memory of the engine. False: the caller must end the connection.
 */
bool connection_execute(struct connection *n, struct call *call);
/* Discards a reply that could not be sent. */
void connection_forget_reply(struct connection *n);
/* Ends connections that wait to be accepted. */
void connections_decline(struct listener *l);
/* Called at intervals: retries replies that could not be sent, or that were not read. */
void connections_tick(struct engine *e, nanotime now);

/* ---- slots.c: commands in the arena ---- */

/* HELLO: makes the slots and their eventfd. 0 or an errno; slots_close() undoes it. */
int slots_open(struct connection *n, struct client *c);
/* Wakes the threads of the program that wait for a reply. The client is still there. */
void slots_close(struct connection *n);
/* Answers the command of the current slot. False: the reply has to go over the socket. */
bool slots_answer(struct connection *n, const struct call *call);
/* ... which has happened. */
void slots_sent(struct connection *n);
/* The connection may execute commands again. */
void slots_go_on(struct connection *n);

/* ---- the socket ---- */

struct listener {
	struct watch watch; /* first; fd -1: none */
	struct engine *engine;
	int lock_fd;
	pid_t locker; /* the process that locked it, and not a child that was forked */
	int files_fd; /* the directory of the device's files; -1: none */
	bool files_late; /* no descriptor was left to write them with */
	char path[108];
	bool shown;
	bool paused; /* out of descriptors: tried again with the next tick */
};

/* 0, or an errno and one line in `why`: which process serves the socket, and what to do. */
int listener_open(struct listener *l, const struct uroce_options *o, char *why, size_t why_size);
/* Makes the socket appear at its path. */
int listener_show(struct listener *l, char *why, size_t why_size);
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);
void listener_close(struct listener *l);

#endif
