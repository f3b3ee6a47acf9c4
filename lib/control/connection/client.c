/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients: a process behind a socket, or the program that embeds the engine. A client ends on EOF,
 * when its pidfd reports its death, or after a malformed message. It is taken apart at once, and
 * other clients do not notice.
 *
 * Atomics: lcores read engine.client and set client.async_owed, a flag. The client's library reads
 * `sleeping` in its page, to which the lcore writes each later change.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "drivers/client_memory/peer.h"
#include "drivers/node.h"
#include "control/control.h"
#include "lcore/moving/moving.h"
#include "drivers/client_memory/mover.h"
#include "control/connection/porters.h"
#include "queue/doorbell.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/*
 * The descriptors and mappings that each client takes from the engine, whatever its program does.
 */
struct share {
	enum resource resource;
	uint64_t n;
};

#define SHARES	      4u
#define OWN_MAPPINGS  (2 * OBJECT_KINDS + 4) /* tables, arena and its list, a mover's stack */
#define OWN_ADDRESSES (LIMIT_ARENA_BYTES + (UINT64_C(512) << 20))

static void own_shares(const struct engine *e, struct share s[SHARES])
{
	s[0] = (struct share){ RESOURCE_PROGRAMS, 1 };
	/* the arena, the program's memory, and an eventfd for each lcore and for commands */
	s[1] = (struct share){ RESOURCE_DESCRIPTORS, 3 + e->lcores };
	s[2] = (struct share){ RESOURCE_MAPPINGS, OWN_MAPPINGS };
	s[3] = (struct share){ RESOURCE_ADDRESSES, OWN_ADDRESSES };
}

static bool take_own(struct client *c)
{
	struct share s[SHARES];

	own_shares(c->engine, s);
	for (uint32_t i = 0; i < SHARES; i++) {
		if (account_take(&c->objects->account, s[i].resource, s[i].n))
			continue;
		while (i-- > 0)
			account_give(&c->objects->account, s[i].resource, s[i].n);
		return false;
	}
	return true;
}

static void give_own(struct client *c)
{
	struct share s[SHARES];

	own_shares(c->engine, s);
	for (uint32_t i = 0; i < SHARES; i++)
		account_give(&c->objects->account, s[i].resource, s[i].n);
}

/* False: no memory. */
static bool make_objects(struct client *c, uid_t uid)
{
	c->objects = calloc(1, sizeof(*c->objects));
	if (c->objects == NULL)
		return false;
	for (uint32_t i = 0; i < LIMIT_LCORES; i++)
		c->objects->wake_fd[i] = -1;
	c->objects->promoted = -1;
	c->objects->uid = uid;
	return account_open(&c->objects->account, &c->engine->control->users, uid, c->embedded);
}

/* A doorbell ring for each lcore, and the client's own eventfds to wake them. */
static bool make_bells(struct client *c)
{
	size_t octets = ring_bytes(DOORBELL_SLOTS, DOORBELL_STRIDE);

	c->page = arena_at(c->arena, 0);
	for (uint32_t i = 0; i < c->engine->lcores; i++) {
		uint64_t offset = arena_allocate(c->arena, octets);

		if (offset == 0)
			return false;
		ring_format(arena_at(c->arena, offset), DOORBELL_SLOTS, true);
		ring_side_init(&c->bell[i], arena_at(c->arena, offset), DOORBELL_SLOTS,
			       DOORBELL_STRIDE);
		c->objects->bell_offset[i] = offset;
		c->objects->wake_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (c->objects->wake_fd[i] < 0)
			return false;
	}
	return true;
}

/*
 * A sleeping lcore wakes when the client writes to its eventfd. Edge-triggered: the eventfd need not
 * be read, so the client cannot keep the lcore awake. 0 or an errno, ENOSPC past fs.epoll.max_user_watches.
 */
static int watch_bells(const struct client *c)
{
	for (uint32_t i = 0; i < c->engine->lcores; i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLET };

		if (epoll_ctl(c->engine->lcore[i].wait_fd, EPOLL_CTL_ADD, c->objects->wake_fd[i],
			      &event) != 0)
			return errno;
	}
	return 0;
}

static void dispose_arena(void *arena)
{
	arena_destroy(arena);
}

void client_free(struct client *c)
{
	bool orphan = c->objects != NULL && c->objects->orphan;

	if (c->objects != NULL) {
		for (uint32_t i = 0; i < LIMIT_LCORES; i++)
			if (c->objects->wake_fd[i] >= 0 && !orphan)
				close(c->objects->wake_fd[i]);
		objects_close(c);
		backing_close(c);
	}
	if (c->memory != NULL) {
		peer_memory_close(c->memory);
		free(c->memory);
	}
	/* the program may have filled it */
	if (!orphan)
		dispose(&c->engine->control->disposal, dispose_arena, c->arena);
	if (c->objects != NULL) {
		if (c->objects->counted)
			give_own(c);
		account_close(&c->objects->account);
	}
	free(c->objects);
	free(c);
}

/* Creates the tables and bells, and charges what they take from the engine. 0 or an errno. */
static int client_build(struct client *c, uid_t uid)
{
	if (!make_objects(c, uid))
		return ENOMEM;
	c->objects->counted = take_own(c);
	if (!c->objects->counted)
		return EUSERS;
	return objects_open(c) && make_bells(c) ? watch_bells(c) : ENOMEM;
}

/* All clients of a user share the number of the user's first client. No other user has it. */
static uint32_t user_number(const struct client *c)
{
	struct client *const *all = c->engine->client;
	uint64_t taken[LIMIT_CLIENTS / 64] = { 0 };
	uint32_t n = 0;

	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++) {
		if (all[i] == NULL || all[i] == c)
			continue;
		if (all[i]->objects->uid == c->objects->uid)
			return all[i]->user;
		taken[all[i]->user / 64] |= UINT64_C(1) << all[i]->user % 64;
	}
	while (n < LIMIT_CLIENTS - 1 && (taken[n / 64] >> n % 64 & 1) != 0)
		n++;
	return n;
}

struct client *client_create(struct engine *e, struct arena *arena, uid_t uid, bool embedded,
			     int *error)
{
	struct client *c = calloc(1, sizeof(*c));
	uint32_t number = 0;

	while (number < LIMIT_CLIENTS && e->client[number] != NULL)
		number++;
	*error = number == LIMIT_CLIENTS ? EUSERS : ENOMEM;
	if (c == NULL || number == LIMIT_CLIENTS) {
		free(c);
		arena_destroy(arena);
		return NULL;
	}
	c->engine = e;
	c->number = number;
	c->embedded = embedded;
	c->arena = arena;
	*error = client_build(c, uid);
	if (*error == 0)
		c->user = user_number(c);
	if (*error == 0)
		return c;
	client_free(c);
	return NULL;
}

static void attach(struct lcore *l, void *arg, nanotime now)
{
	struct client *c = arg;

	lcore_client_attach(l, c);
	/* Its thread may be asleep meanwhile: lcore_call. */
	__atomic_store_n(&c->page->lcore[l->index].sleeping,
			 __atomic_load_n(&l->sleeping, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&c->page->lcore[l->index].processor, l->processor, __ATOMIC_RELAXED);
}

void client_start(struct client *c)
{
	struct engine *e = c->engine;

	__atomic_store_n(&e->client[c->number], c, __ATOMIC_RELEASE);
	e->client_count++;
	c->page->heartbeat = e->heartbeat;
	clock_publish(c->page);
	for (uint32_t i = 0; i < e->lcores; i++)
		lcore_call(&e->lcore[i], attach, c);
}

static bool context_send(const struct context *x, uint32_t event)
{
	struct async_message m = { .event = event, .object = 0, .cookie = 1 };

	return send(x->async_fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS);
}

/* If the link goes down and up again before the program reads, only the last event stays. */
static void context_tell(struct context *x, uint32_t event)
{
	const uint32_t of_link = 1u << EVENT_PORT_ACTIVE | 1u << EVENT_PORT_ERR;

	if (x->async_owed == 0 && context_send(x, event))
		return;
	if ((of_link >> event & 1) != 0)
		x->async_owed &= ~of_link;
	x->async_owed |= 1u << event;
	__atomic_store_n(&x->client->async_owed, 1, __ATOMIC_RELEASE);
}

void context_tell_owed(struct context *x, struct owed_round *round)
{
	uint32_t owed = x->async_owed;

	x->async_owed = 0;
	for (uint32_t event = 0; owed >> event != 0; event++)
		if ((owed >> event & 1) != 0)
			context_tell(x, event);
	round->told |= x->async_owed != owed;
}

void client_event(struct client *c, enum port_event event)
{
	struct handle_table *t = &c->objects->table[OBJECT_CONTEXT];

	for (uint32_t i = 1; i <= t->used; i++)
		if (t->slot[i] != NULL)
			context_tell(t->slot[i], event);
}

/* ---- HELLO ---- */

/* Whether the process that connected still exists: then no other process has its pid. */
static bool process_is_there(const struct connection *n)
{
	struct pollfd p = { .fd = n->process.fd, .events = POLLIN };

	return n->pid > 0 && n->process.fd >= 0 && poll(&p, 1, 0) == 0;
}

/*
 * Takes the memory of the process that connected, as a porter found it. EACCES: the engine may not
 * open it, and needs the client's own descriptor.
 */
static int find_memory(struct call *call, struct connection *n, struct peer_memory *m)
{
	int error = call->memory.sought ? call->memory.error : EACCES;
	pid_t pid = call->memory.by_pid ? n->pid : 0;

	if (error == EPERM)
		return call_fail(call, EPROTO, "HELLO must come from the process that connected");
	if (call->memory.foreign)
		return call_fail(call, EPROTO,
				 "the descriptor is not the program's /proc/self/mem");
	if (error != 0)
		return error;
	if (!process_is_there(n) || peer_memory_open(m, call->memory.fd, pid, n->uid) != 0)
		return call_fail(call, EPROTO, "the program that connected has ended");
	call->memory.sought = false; /* the descriptor stays open */
	n->proven = true;
	return 0;
}

static int take_memory(struct call *call, struct peer_memory *m)
{
	struct connection *n = call->connection;

	if (call->in.count == 0)
		return call_fail(call, EACCES,
				 "the engine may not open the program's memory and needs a "
				 "descriptor of it");
	if (peer_memory_open(m, call->in.fd[0], 0, n->uid) != 0)
		return call_fail(call, EPROTO,
				 "the descriptor is not the program's /proc/self/mem");
	call->in.fd[0] = -1;
	n->proven = call->memory.sought && call->memory.proven && call->memory.by_pid &&
		    process_is_there(n);
	return 0;
}

static int reach_memory(struct call *call, struct client *c)
{
	struct connection *n = call->connection;
	int error;

	c->memory = calloc(1, sizeof(*c->memory));
	if (c->memory == NULL)
		return ENOMEM;
	c->memory->fd = -1;
	n->proven = false;
	error = find_memory(call, n, c->memory);
	if (error == EACCES)
		error = take_memory(call, c->memory);
	return error;
}

static void answer_hello(struct call *call, const struct client *c)
{
	struct reply_hello *reply = (struct reply_hello *)&call->reply;

	reply->engine_id = c->engine->id;
	reply->arena_bytes = LIMIT_ARENA_BYTES;
	reply->client = c->number;
	reply->lcores = c->engine->lcores;
	call->out.fd[call->out.count++] = arena_fd(c->arena);
	for (uint32_t i = 0; i < c->engine->lcores; i++) {
		reply->bell_offset[i] = c->objects->bell_offset[i];
		call->out.fd[call->out.count++] = c->objects->wake_fd[i];
	}
	reply->slots_offset = c->objects->slots_offset;
	call->out.fd[call->out.count++] = call->connection->doorbell.fd;
	call->out_borrowed = UINT32_MAX;
}

/* Checks first whether there is room for another program of this user. */
static int check_share(struct call *call)
{
	struct users *all = &call->engine->control->users;
	struct user *u = call->connection->user;
	struct share s[SHARES];

	own_shares(call->engine, s);
	for (uint32_t i = 0; i < SHARES; i++) {
		if (user_take(all, u, s[i].resource, s[i].n)) {
			user_give(all, u, s[i].resource, s[i].n);
			continue;
		}
		user_explain(all, u, s[i].resource, call->reply.why, sizeof(call->reply.why));
		return EUSERS;
	}
	return 0;
}

static int say_no_room(struct call *call, int error)
{
	if (error == ENOSPC)
		return call_fail(call, error,
				 "the engine's user has reached fs.epoll.max_user_watches");
	return call_fail(call, error, "the engine has no room for another program: it serves %u",
			 call->engine->client_count);
}

int cmd_hello(struct call *call)
{
	const struct request_hello *r = (const struct request_hello *)call->request;
	struct arena *arena;
	struct client *c;
	int error;

	if (call->connection == NULL)
		return call_fail(call, EPERM, "an embedded program is already attached");
	error = check_share(call);
	if (error != 0)
		return error;
	arena = arena_create_shared("uroce");
	if (arena == NULL)
		return call_fail(call, errno, "the engine cannot create an arena");
	if (call->engine->port != NULL)
		node_place(arena_base(arena), LIMIT_ARENA_BYTES, call->engine->port->node);
	c = client_create(call->engine, arena, call->connection->uid, false, &error);
	if (c == NULL)
		return say_no_room(call, error);
	error = reach_memory(call, c);
	/* Its memory may block for ever. The engine's own user gets a mover with such a region. */
	if (error == 0 && (call->connection->uid != geteuid() || !call->connection->proven))
		error = client_mover_give(c);
	if (error == 0)
		error = slots_open(call->connection, c);
	if (error != 0) {
		slots_close(call->connection);
		if (client_mover(c) != NULL)
			mover_close(client_mover(c));
		client_free(c);
		return error;
	}
	c->objects->pid = call->connection->pid;
	c->objects->pid_sure = call->connection->known || call->connection->proven;
	memcpy(c->objects->program, r->program, sizeof(c->objects->program) - 1);
	client_start(c);
	call->connection->client = c;
	answer_hello(call, c);
	return 0;
}

/* ---- connections ---- */

static void process_ended(struct watch *w, uint32_t events)
{
	connection_end(container_of_type(w, struct connection, process));
}

/*
 * The process that called connect(2). Linux before 6.5 only tells its pid, which may belong to
 * another process by now: it may have ended before we took the connection. Such a process gives
 * the client nothing before its memory is proven to be the client's.
 */
static int process_of_peer(struct connection *n)
{
	socklen_t size = sizeof(int);
	int fd;

	if (getsockopt(n->socket.fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) {
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		n->known = true;
		return fd;
	}
	return errno == ENOPROTOOPT && n->pid > 0 ? (int)syscall(SYS_pidfd_open, n->pid, 0) : -1;
}

static bool watch_process(struct connection *n)
{
	n->process.fd = process_of_peer(n);
	n->process.ready = process_ended;
	if (n->process.fd < 0)
		return n->pid <= 0; /* in another pid namespace: EOF on the socket must do */
	return watch_add(n->engine, &n->process) == 0;
}

#define CONNECTION_DESCRIPTORS 2u /* the socket and the pidfd */

static void connection_give_share(struct connection *n)
{
	struct users *all = &n->engine->control->users;

	user_give(all, n->user, RESOURCE_CONNECTIONS, 1);
	user_give(all, n->user, RESOURCE_DESCRIPTORS, CONNECTION_DESCRIPTORS);
	user_drop(n->user);
}

void connection_end(struct connection *n)
{
	struct engine *e = n->engine;

	call_abandon(n);
	capture_end(e, n);
	LIST_REMOVE(n, link);
	e->control->connection_count--;
	connection_give_share(n);
	watch_remove(e, &n->process);
	epoll_ctl(e->control->epoll_fd, EPOLL_CTL_DEL, n->socket.fd, NULL);
	porter_forget(n);
	connection_forget_reply(n);
	slots_close(n);
	if (n->client != NULL)
		client_end(n->client);
	porter_drop(e, n->socket.fd, n->uid);
	free(n);
	e->control->empty_since = clock_now();
}

static bool connection_take_share(struct connection *n)
{
	struct users *all = &n->engine->control->users;

	n->user = user_get(all, n->uid);
	if (n->user == NULL)
		return false;
	if (user_take(all, n->user, RESOURCE_CONNECTIONS, 1)) {
		if (user_take(all, n->user, RESOURCE_DESCRIPTORS, CONNECTION_DESCRIPTORS))
			return true;
		user_give(all, n->user, RESOURCE_CONNECTIONS, 1);
	}
	user_drop(n->user);
	return false;
}

static void connection_begin(struct engine *e, int fd)
{
	struct connection *n = calloc(1, sizeof(*n));
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(who);

	if (n != NULL && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
		n->engine = e;
		n->pid = who.pid;
		n->uid = who.uid;
	}
	if (n == NULL || n->engine == NULL || !connection_take_share(n)) {
		porter_drop(e, fd, who.uid);
		free(n);
		return;
	}
	n->process.fd = -1;
	n->doorbell.fd = -1;
	n->socket.fd = fd;
	n->socket.ready = connection_ready;
	if (!watch_process(n) || watch_add(e, &n->socket) != 0) {
		watch_remove(e, &n->process);
		connection_give_share(n);
		porter_drop(e, fd, who.uid);
		free(n);
		return;
	}
	LIST_INSERT_HEAD(&e->control->connections, n, link);
	e->control->connection_count++;
}

/* Connections that are not accepted any more may contain messages with descriptors. */
void connections_decline(struct listener *l)
{
	int fd;

	shutdown(l->watch.fd, SHUT_RDWR);
	while ((fd = accept4(l->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		porter_drop(l->engine, fd, (uid_t)-1);
}

void connection_accept(struct watch *w, uint32_t events)
{
	struct listener *l = container_of_type(w, struct listener, watch);
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		connection_begin(l->engine, fd);
	else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
		listener_pause(l);
}
