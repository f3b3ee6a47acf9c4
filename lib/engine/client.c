/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients: a process behind a socket, or the program that the engine is embedded in. One that
 * dies, by EOF or by its pidfd, or that sends nonsense, is taken apart at once; nobody else
 * notices.
 */
#include <errno.h>
#include <fcntl.h>
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
#include "engine/cm_manager.h"
#include "engine/control.h"
#include "queue/doorbell.h"

static const uint32_t quota[OBJECT_KINDS] = {
	[OBJECT_RWQ_TABLE] = LIMIT_RWQ_TABLES,
	[OBJECT_RSS] = LIMIT_RWQ_TABLES,
	[OBJECT_FLOW] = LIMIT_FLOWS,
	[OBJECT_COUNTERS] = LIMIT_COUNTERS,
	[OBJECT_CONTEXT] = LIMIT_CLIENT_CONTEXTS,
	[OBJECT_PD] = LIMIT_PDS,
	[OBJECT_MR] = LIMIT_MRS,
	[OBJECT_CHANNEL] = LIMIT_CLIENT_CHANNELS,
	[OBJECT_CQ] = LIMIT_CQS,
	[OBJECT_QP] = LIMIT_QPS,
	[OBJECT_AH] = LIMIT_AHS,
	[OBJECT_DM] = LIMIT_CLIENT_DMS,
	[OBJECT_MR_IMPORT] = LIMIT_MRS,
	[OBJECT_MW] = LIMIT_MRS,
	[OBJECT_SRQ] = LIMIT_SRQS,
	[OBJECT_XRCD] = LIMIT_CLIENT_XRCDS,
	[OBJECT_TARGET] = LIMIT_QPS,
	[OBJECT_CM_CHANNEL] = LIMIT_CLIENT_CM_CHANNELS,
	[OBJECT_CM_ID] = LIMIT_CLIENT_CM_IDS,
	[OBJECT_CM_JOIN] = LIMIT_CLIENT_CM_JOINS,
};

static bool make_tables(struct client *c)
{
	c->objects = calloc(1, sizeof(*c->objects));
	if (c->objects == NULL)
		return false;
	for (uint32_t i = 0; i < LIMIT_LCORES; i++)
		c->objects->wake_fd[i] = -1;
	for (uint32_t kind = 0; kind < OBJECT_KINDS; kind++)
		if (handle_table_init(&c->objects->table[kind], quota[kind]) != 0)
			return false;
	c->qp = (struct engine_qp **)c->objects->table[OBJECT_QP].slot;
	c->ah = (struct engine_ah **)c->objects->table[OBJECT_AH].slot;
	return true;
}

/* A doorbell ring for each lcore, and an eventfd of the client's own to wake it with. */
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

static void client_free(struct client *c)
{
	if (c->objects != NULL) {
		for (uint32_t i = 0; i < LIMIT_LCORES; i++)
			if (c->objects->wake_fd[i] >= 0)
				close(c->objects->wake_fd[i]);
		for (uint32_t kind = 0; kind < OBJECT_KINDS; kind++)
			handle_table_destroy(&c->objects->table[kind]);
		direct_close(&c->objects->promoted);
	}
	if (c->memory != NULL) {
		peer_memory_close(c->memory);
		free(c->memory);
	}
	arena_destroy(c->arena);
	free(c->objects);
	free(c);
}

/*
 * Whether a user who has `own` of `all` places taken, of `most`, may have another one. The last quarter
 * is for users who have few: one that takes all that it can finds others served all the same.
 */
static bool user_may_have(uint32_t own, uint32_t all, uint32_t most)
{
	return all < most - most / 4 || (all < most && own < most / 16);
}

static uint32_t clients_of_user(const struct engine *e, uid_t uid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		n += e->client[i] != NULL && !e->client[i]->embedded &&
		     e->client[i]->objects->uid == uid;
	return n;
}

static uint32_t connections_of_user(const struct engine *e, uid_t uid)
{
	const struct connection *n;
	uint32_t count = 0;

	LIST_FOREACH(n, &e->control->connections, link)
	count += n->uid == uid;
	return count;
}

struct client *client_create(struct engine *e, struct arena *arena, int *error)
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
	c->arena = arena;
	if (!make_tables(c) || !make_bells(c)) {
		client_free(c);
		return NULL;
	}
	return c;
}

static void attach(struct lcore *l, void *arg, nanotime now)
{
	struct client *c = arg;

	lcore_client_attach(l, c);
	/* Its thread may sleep all the while: lcore_call. */
	__atomic_store_n(&c->page->lcore[l->index].sleeping,
			 __atomic_load_n(&l->sleeping, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

static void detach(struct lcore *l, void *arg, nanotime now)
{
	lcore_client_detach(l, arg);
}

void client_start(struct client *c)
{
	struct engine *e = c->engine;

	__atomic_store_n(&e->client[c->number], c, __ATOMIC_RELEASE);
	e->client_count++;
	c->page->heartbeat = e->heartbeat;
	clock_publish(c->page);
	for (uint32_t i = 0; i < e->lcores; i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLET };

		/* Edges: nobody needs to read the client's eventfd, and it cannot hold us awake. */
		epoll_ctl(e->control->wait_fd[i], EPOLL_CTL_ADD, c->objects->wake_fd[i], &event);
		lcore_call(&e->lcore[i], attach, c);
	}
}

void client_destroy(struct client *c)
{
	struct engine *e = c->engine;

	c->dying = true;
	cm_reclaim(c);
	for (uint32_t i = 0; i < e->lcores; i++) {
		lcore_call(&e->lcore[i], detach, c);
		epoll_ctl(e->control->wait_fd[i], EPOLL_CTL_DEL, c->objects->wake_fd[i], NULL);
	}
	objects_reclaim(c, 0);
	client_mover_take(c);
	if (!client_mover_settle(c)) {
		fprintf(stderr, "uroce: a copy of %s's memory does not end; left behind\n",
			c->objects->program);
		c->memory = NULL; /* the copy still names it, for ever */
	}
	__atomic_store_n(&c->page->closed, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&e->client[c->number], NULL, __ATOMIC_RELEASE);
	e->client_count--;
	client_free(c);
}

static bool context_send(const struct context *x, uint32_t event)
{
	struct async_message m = { .event = event, .object = 0, .cookie = 1 };

	return send(x->async_fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS);
}

/* Of a link that went and came meanwhile the last event stays. */
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

static int reach_memory(struct call *call, struct client *c)
{
	struct connection *n = call->connection;
	int error;

	if (call->in.count != 1)
		return call_fail(call, EPROTO, "one descriptor, of /proc/self/mem, is wanted");
	c->memory = calloc(1, sizeof(*c->memory));
	if (c->memory == NULL)
		return ENOMEM;
	c->memory->fd = -1;
	error = peer_memory_open(c->memory, call->in.fd[0], n->pid, n->uid);
	if (error != 0)
		return call_fail(call, EPROTO,
				 "the descriptor is not the program's /proc/self/mem");
	c->memory->owner = c->number;
	call->in.fd[0] = -1;
	return 0;
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
	call->out_borrowed = UINT32_MAX;
}

int cmd_hello(struct call *call)
{
	const struct request_hello *r = (const struct request_hello *)call->request;
	struct arena *arena;
	struct client *c;
	uint32_t own;
	int error;

	if (call->connection == NULL)
		return call_fail(call, EPERM, "an embedded program is attached already");
	own = clients_of_user(call->engine, call->connection->uid);
	if (!user_may_have(own, call->engine->client_count, LIMIT_CLIENTS))
		return call_fail(call, EUSERS,
				 "the engine serves %u programs, %u of them this user's: what "
				 "room there is left is for others",
				 call->engine->client_count, own);
	arena = arena_create_shared("uroce");
	if (arena == NULL)
		return call_fail(call, errno, "the engine cannot make an arena");
	c = client_create(call->engine, arena, &error);
	if (c == NULL)
		return call_fail(call, error, "the engine serves %u programs and has no room",
				 call->engine->client_count);
	error = reach_memory(call, c);
	if (error == 0 && call->connection->uid != geteuid())
		error = client_mover_give(c);
	if (error == 0)
		error = connection_watch_process(call->connection);
	if (error != 0) {
		client_mover_take(c);
		client_free(c);
		return error;
	}
	c->objects->pid = call->connection->pid;
	c->objects->uid = call->connection->uid;
	memcpy(c->objects->program, r->program, sizeof(c->objects->program) - 1);
	client_start(c);
	call->connection->client = c;
	answer_hello(call, c);
	return 0;
}

/* ---- connections ---- */

union descriptor_space {
	struct cmsghdr align;
	char octets[CMSG_SPACE(LIMIT_COMMAND_FDS * sizeof(int))];
};

/* Every descriptor that came is ours now, wanted or not. */
static void take_descriptors(struct msghdr *message, struct carrier_descriptors *in)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n && in->count < LIMIT_COMMAND_FDS; i++)
			memcpy(&in->fd[in->count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
}

static bool send_reply(int fd, struct call *call)
{
	struct iovec iov = { call->reply_octets, call->reply_length };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	union descriptor_space space;

	if (call->out.count > 0) {
		size_t octets = call->out.count * sizeof(int);
		struct cmsghdr *c;

		memset(&space, 0, sizeof(space));
		message.msg_control = &space;
		message.msg_controllen = CMSG_SPACE(octets);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(octets);
		memcpy(CMSG_DATA(c), call->out.fd, octets);
	}
	/* A program that does not take its replies asked for them all the same: it is ended. */
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)call->reply_length;
}

/* One message. False: the connection is to be ended. */
static bool serve(struct connection *n)
{
	static_assert(LIMIT_COMMAND_FDS <= 32, "out_borrowed has a bit for each");
	uint8_t octets[LIMIT_COMMAND_BYTES] __attribute__((aligned(8)));
	struct iovec iov = { octets, sizeof(octets) };
	union descriptor_space space;
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &space,
				  .msg_controllen = sizeof(space) };
	struct call call = { .engine = n->engine, .client = n->client, .connection = n };
	ssize_t got = recvmsg(n->socket.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	bool going_on;

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	take_descriptors(&message, &call.in);
	/* Descriptors are lost where too many came, and where we can have no more. */
	call.in_lost = (message.msg_flags & MSG_CTRUNC) && call.in.count < LIMIT_COMMAND_FDS;
	if (got == 0 || (message.msg_flags & MSG_TRUNC) ||
	    ((message.msg_flags & MSG_CTRUNC) && !call.in_lost)) {
		call_close_descriptors(&call);
		return false;
	}
	call.request = (const struct command_request *)octets;
	call.length = (size_t)got;
	command_execute(&call);
	going_on = send_reply(n->socket.fd, &call) && call.reply.error != EPROTO;
	call_close_descriptors(&call);
	return going_on;
}

static void socket_ready(struct watch *w, uint32_t events)
{
	struct connection *n = container_of_type(w, struct connection, socket);

	if (!serve(n) || ((events & (EPOLLHUP | EPOLLERR)) && !(events & EPOLLIN)))
		connection_end(n);
}

static void process_ended(struct watch *w, uint32_t events)
{
	connection_end(container_of_type(w, struct connection, process));
}

int connection_watch_process(struct connection *n)
{
	if (n->pid <= 0)
		return 0; /* of another pid namespace: its socket must do */
	n->process.fd = (int)syscall(SYS_pidfd_open, n->pid, 0);
	if (n->process.fd < 0)
		return errno;
	fcntl(n->process.fd, F_SETFD, FD_CLOEXEC);
	n->process.ready = process_ended;
	return watch_add(n->engine, &n->process);
}

void connection_end(struct connection *n)
{
	struct engine *e = n->engine;

	LIST_REMOVE(n, link);
	e->control->connection_count--;
	watch_remove(e, &n->process);
	watch_remove(e, &n->socket);
	if (n->client != NULL)
		client_destroy(n->client);
	free(n);
	e->control->empty_since = clock_now();
}

static void connection_begin(struct engine *e, int fd)
{
	struct connection *n = calloc(1, sizeof(*n));
	struct ucred who;
	socklen_t size = sizeof(who);

	if (n == NULL || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
	    !user_may_have(connections_of_user(e, who.uid), e->control->connection_count,
			   LIMIT_CONNECTIONS)) {
		close(fd);
		free(n);
		return;
	}
	n->engine = e;
	n->pid = who.pid;
	n->uid = who.uid;
	n->process.fd = -1;
	n->socket.fd = fd;
	n->socket.ready = socket_ready;
	if (watch_add(e, &n->socket) != 0) {
		close(fd);
		free(n);
		return;
	}
	LIST_INSERT_HEAD(&e->control->connections, n, link);
	e->control->connection_count++;
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
