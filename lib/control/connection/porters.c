/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/connection/porters.h"
#include "control/connection/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "drivers/client_memory/peer.h"
#include "drivers/client_memory/porter.h"

#define WAIT_MOST  (LIMIT_PORTER_WAIT_S * TIME_S)
#define QUEUE_MOST (LIMIT_PORTER_QUEUE_S * TIME_S)
#define RESERVE	   3u /* both ends of a porter's channel, and its pidfd */

static_assert(QUEUE_MOST < LIMIT_COMMAND_WAIT * TIME_MS, "the client still waits for the answer");

/* Porters that the parent has not created yet are in `asked`, in the order of the requests. */
struct porter {
	struct watch channel; /* to it; -1: it keeps a file, or has nothing more to say */
	struct watch process; /* its pidfd; -1: not created yet */
	struct engine *engine;
	struct connection *connection; /* whose message it carries; NULL: none */
	uid_t uid;
	bool drops; /* it closes the sockets that wait when it is created */
	bool keeps; /* it keeps a file open for an engine object */
	STAILQ_ENTRY(porter) asked;
	LIST_ENTRY(porter) link;
};

/* A socket that waits to be closed. It counts as a descriptor of its user meanwhile. */
struct drop {
	int socket;
	uid_t uid;
	struct user *user; /* NULL: the user has reached its limit, or there was no memory */
	STAILQ_ENTRY(drop) link;
};

struct porters {
	struct watch parent;
	struct engine *engine;
	LIST_HEAD(, porter) all;
	STAILQ_HEAD(, porter) asked; /* requested from the parent */
	TAILQ_HEAD(, connection) carried; /* the longest first, with a porter or without */
	STAILQ_HEAD(, drop) drops;
	bool looks; /* look_for_work is running, or has to wait: not from within */
	struct porter *spare; /* so that a program's request does not depend on memory */
	int reserve[RESERVE]; /* descriptors for when there are no others; -1: in use */
};

/* ---- descriptors in reserve ---- */

static void reserve_fill(struct porters *p)
{
	for (uint32_t i = 0; i < RESERVE; i++)
		if (p->reserve[i] < 0)
			p->reserve[i] = fcntl(p->engine->control->epoll_fd, F_DUPFD_CLOEXEC, 0);
}

static void reserve_give(struct porters *p)
{
	for (uint32_t i = 0; i < RESERVE; i++)
		if (p->reserve[i] >= 0)
			close(p->reserve[i]);
	memset(p->reserve, -1, sizeof(p->reserve));
}

/* ---- one porter ---- */

static void look_for_work(struct porters *p);

/*
 * A porter has ended: connections that wait for one of that user, or for a new one, go on waiting.
 */
static void wait_on(struct porters *p, uid_t uid)
{
	struct connection *n;

	TAILQ_FOREACH(n, &p->carried, carried_link)
	if (n->uid == uid && (n->porter == NULL || n->porter->process.fd < 0))
		n->carried_since = clock_now();
}

/* The process has ended, or was not created. */
static void porter_free(struct porter *o)
{
	struct porters *p = o->engine->control->porters;

	if (o->process.fd >= 0 && !o->keeps && !o->drops)
		wait_on(p, o->uid);
	watch_remove(o->engine, &o->channel);
	watch_remove(o->engine, &o->process);
	LIST_REMOVE(o, link);
	if (o->connection != NULL)
		o->connection->porter = NULL;
	if (p->spare == NULL)
		p->spare = o;
	else
		free(o);
	reserve_fill(p);
	look_for_work(p);
}

static void porter_ended(struct watch *w, uint32_t events)
{
	struct porter *o = container_of_type(w, struct porter, process);
	struct connection *n = o->connection;

	/* It ended without a report: its message is still there, or lost. */
	porter_free(o);
	if (n != NULL)
		connection_end(n);
}

static void porter_reports(struct watch *w, uint32_t events)
{
	struct porter *o = container_of_type(w, struct porter, channel);
	struct call call = { .engine = o->engine, .porter = o };
	struct connection *n = o->connection;
	struct porter_report r;

	if (!report_receive(w->fd, &r, &call)) {
		/* its pidfd reports its end */
		watch_remove(o->engine, w);
		return;
	}
	o->connection = NULL;
	if (n == NULL) {
		call_close_descriptors(&call);
		watch_remove(o->engine, w);
		return;
	}
	porter_forget(n);
	call.request = (const struct command_request *)r.octets;
	connection_carried(n, &call);
	if (!o->keeps)
		watch_remove(o->engine, w);
}

int porter_keep(struct call *call)
{
	const struct porters *p = call->engine->control->porters;
	struct porter *o = call->porter;
	uint32_t kept = 0;
	struct porter *other;
	int fd;

	if (o == NULL)
		return -1;
	LIST_FOREACH(other, &p->all, link)
	kept += other->keeps && other->uid == o->uid;
	if (kept >= LIMIT_USER_FILES)
		return -1;
	fd = fcntl(o->channel.fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	o->keeps = true;
	watch_remove(o->engine, &o->channel);
	return fd;
}

/* ---- the parent of porters ---- */

static void drop_free(struct porters *p, struct drop *d)
{
	struct users *all = &p->engine->control->users;

	STAILQ_REMOVE(&p->drops, d, drop, link);
	if (d->user != NULL) {
		user_give(all, d->user, RESOURCE_DESCRIPTORS, 1);
		user_drop(d->user);
	}
	free(d);
}

/* Gives it the waiting sockets of its user, as many as it takes. */
static void give_drops(struct porters *p, struct porter *o)
{
	const struct porter_task task = { .order = PORTER_DROP };
	struct drop *d, *next;

	for (d = STAILQ_FIRST(&p->drops); d != NULL; d = next) {
		next = STAILQ_NEXT(d, link);
		if (d->uid != o->uid)
			continue;
		if (porter_send(o->channel.fd, &task, sizeof(task), d->socket) != 0)
			break; /* the next porter takes it */
		/* Not the last reference: the porter waits until the engine closes its channel. */
		close(d->socket);
		drop_free(p, d);
	}
	watch_remove(p->engine, &o->channel);
}

static bool give_message(struct porter *o, struct connection *n)
{
	const struct porter_task task = {
		.order = n->client == NULL ? PORTER_GREET : PORTER_CARRY,
		.pid = n->pid,
		.proof = offsetof(struct request_hello, proof),
		.proof_at = offsetof(struct request_hello, proof_at),
	};

	n->carried_since = clock_now();
	return porter_send(o->channel.fd, &task, sizeof(task), n->socket.fd) == 0;
}

/* False: it could not be given. */
static bool give_work(struct porters *p, struct porter *o)
{
	if (o->connection != NULL)
		return give_message(o, o->connection);
	if (o->drops)
		give_drops(p, o);
	else
		watch_remove(p->engine, &o->channel); /* its connection has ended: so must it */
	return true;
}

/* The result of the oldest request. */
static void porter_is_made(struct porters *p, int error, int pidfd)
{
	struct porter *o = STAILQ_FIRST(&p->asked);
	struct connection *n;

	if (o == NULL) {
		close(pidfd);
		return;
	}
	STAILQ_REMOVE_HEAD(&p->asked, asked);
	n = o->connection;
	o->process.fd = pidfd;
	o->process.ready = porter_ended;
	o->channel.ready = porter_reports;
	if (error == 0 && pidfd >= 0 && watch_add(p->engine, &o->process) == 0 &&
	    watch_add(p->engine, &o->channel) == 0 && give_work(p, o))
		return;
	/* Tried again later: ETOOMANYREFS, no process, no descriptor. */
	o->connection = NULL;
	if (n != NULL)
		n->porter = NULL;
	porter_free(o);
}

static void parent_answers(struct watch *w, uint32_t events)
{
	struct porters *p = container_of_type(w, struct porters, parent);
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(sizeof(int))];
	} space;
	struct porter_made made;
	struct iovec iov = { &made, sizeof(made) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &space,
			    .msg_controllen = sizeof(space) };
	int pidfd = -1;
	ssize_t got;

	reserve_give(p);
	got = recvmsg(w->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	reserve_fill(p);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got == sizeof(made)) {
		if (CMSG_FIRSTHDR(&m) != NULL)
			memcpy(&pidfd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(pidfd));
		porter_is_made(p, made.error, pidfd);
		return;
	}
	/*
	 * The parent was killed. What it owed is asked of another one, but only when all of that is
	 * out of the list: answers belong to the oldest request.
	 */
	watch_remove(p->engine, w);
	p->looks = true;
	while (!STAILQ_EMPTY(&p->asked))
		porter_is_made(p, ECHILD, -1);
	p->looks = false;
	look_for_work(p);
}

static bool have_parent(struct porters *p)
{
	if (p->parent.fd >= 0)
		return true;
	p->parent.fd = porter_start();
	p->parent.ready = parent_answers;
	if (p->parent.fd >= 0 && watch_add(p->engine, &p->parent) != 0) {
		close(p->parent.fd);
		p->parent.fd = -1;
	}
	return p->parent.fd >= 0;
}

/* ---- requests for porters ---- */

/* Porters that close sockets count separately, so that sockets do not pile up while others hang. */
static bool may_have_one(const struct porters *p, uid_t uid, bool drops)
{
	uint32_t all = 0, own = 0;
	const struct porter *o;

	LIST_FOREACH(o, &p->all, link)
	{
		if (o->keeps || o->drops != drops)
			continue;
		all++;
		own += o->uid == uid;
	}
	/* Root and the engine's own user can end what hangs: others' porters do not limit them. */
	return (all < LIMIT_PORTERS || uid == 0 || uid == geteuid()) && own < LIMIT_USER_PORTERS;
}

static struct porter *ask_for_one(struct porters *p, uid_t uid, bool drops)
{
	struct porter *o;
	uint8_t octet = 0;
	int ends[2];

	if (!may_have_one(p, uid, drops) || !have_parent(p))
		return NULL;
	reserve_give(p);
	o = p->spare != NULL ? p->spare : calloc(1, sizeof(*o));
	p->spare = NULL;
	if (o == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		p->spare = o;
		return NULL;
	}
	*o = (struct porter){ 0 };
	if (porter_send(p->parent.fd, &octet, sizeof(octet), ends[1]) != 0) {
		close(ends[0]);
		close(ends[1]);
		p->spare = o;
		return NULL;
	}
	close(ends[1]);
	o->engine = p->engine;
	o->channel.fd = ends[0];
	o->process.fd = -1;
	o->uid = uid;
	o->drops = drops;
	LIST_INSERT_HEAD(&p->all, o, link);
	STAILQ_INSERT_TAIL(&p->asked, o, asked);
	reserve_fill(p);
	return o;
}

static bool carry_now(struct porters *p, struct connection *n)
{
	struct porter *o = ask_for_one(p, n->uid, false);

	if (o == NULL)
		return false;
	o->connection = n;
	n->porter = o;
	return true;
}

/* A porter that is being created takes all sockets that wait then. */
static void drop_soon(struct porters *p, uid_t uid)
{
	const struct porter *o;

	STAILQ_FOREACH(o, &p->asked, asked)
	if (o->drops && o->uid == uid)
		return;
	ask_for_one(p, uid, true);
}

static void look_for_work(struct porters *p)
{
	struct connection *n;
	const struct drop *d;

	if (p->looks)
		return;
	p->looks = true;
	TAILQ_FOREACH(n, &p->carried, carried_link)
	if (n->porter == NULL)
		carry_now(p, n);
	STAILQ_FOREACH(d, &p->drops, link)
	drop_soon(p, d->uid);
	p->looks = false;
}

void porter_carry(struct connection *n)
{
	struct porters *p = n->engine->control->porters;

	n->carried = true;
	n->carried_at = n->carried_since = clock_now();
	TAILQ_INSERT_TAIL(&p->carried, n, carried_link);
	carry_now(p, n);
}

void porter_forget(struct connection *n)
{
	if (n->porter != NULL)
		n->porter->connection = NULL;
	n->porter = NULL;
	if (n->carried)
		TAILQ_REMOVE(&n->engine->control->porters->carried, n, carried_link);
	n->carried = false;
}

/*
 * Reads messages without descriptors. True: nothing is left, and nothing can come. Messages come with
 * credentials, which tell an empty message from the end.
 */
static bool is_empty(int socket)
{
	char credentials[CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(8)));
	char octet;
	struct iovec iov = { &octet, 1 };

	shutdown(socket, SHUT_RDWR);
	if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) != 0)
		return false;
	for (;;) {
		struct msghdr m = { .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = credentials,
				    .msg_controllen = sizeof(credentials) };
		ssize_t got = recvmsg(socket, &m, MSG_PEEK | MSG_DONTWAIT);

		if (got < 0 && errno == ECONNRESET)
			continue; /* told once, before what is still there */
		if (got < 0 || (m.msg_flags & MSG_CTRUNC) != 0)
			return false; /* there is no room for descriptors, so they stay */
		if (m.msg_controllen == 0)
			return true;
		recv(socket, &octet, 1, MSG_DONTWAIT);
	}
}

void porter_drop(struct engine *e, int socket, uid_t uid)
{
	struct users *all = &e->control->users;
	struct porters *p = e->control->porters;
	struct drop *d;

	if (is_empty(socket)) {
		close(socket);
		return;
	}
	d = p != NULL ? calloc(1, sizeof(*d)) : NULL;
	if (d == NULL)
		return; /* it stays open: a lost descriptor blocks no program */
	d->socket = socket;
	d->uid = uid;
	d->user = user_get(all, uid);
	if (d->user != NULL && !user_take(all, d->user, RESOURCE_DESCRIPTORS, 1)) {
		user_drop(d->user);
		d->user = NULL;
	}
	STAILQ_INSERT_TAIL(&p->drops, d, link);
	drop_soon(p, uid);
}

/* For long without any progress of its user's porters, or altogether. */
static struct connection *waits_too_long(const struct porters *p, nanotime now)
{
	struct connection *n;

	TAILQ_FOREACH(n, &p->carried, carried_link)
	if (now - n->carried_since > WAIT_MOST || now - n->carried_at > QUEUE_MOST)
		return n;
	return NULL;
}

void porters_tick(struct engine *e, nanotime now)
{
	struct connection *n;

	if (e->control->porters == NULL)
		return;
	look_for_work(e->control->porters);
	reserve_fill(e->control->porters);
	while ((n = waits_too_long(e->control->porters, now)) != NULL)
		connection_refuse(n, EUSERS,
				  "closing descriptors of this user's programs hangs: no more are "
				  "taken");
}

uint32_t porters_busy(const struct engine *e)
{
	const struct porters *p = e->control->porters;
	const struct porter *o;
	uint32_t n = 0;

	if (p != NULL)
		LIST_FOREACH(o, &p->all, link)
	n += !o->keeps;
	return n;
}

/* ---- begin and end ---- */

int porters_open(struct engine *e)
{
	struct porters *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return ENOMEM;
	p->engine = e;
	p->parent.fd = -1;
	p->spare = calloc(1, sizeof(*p->spare));
	memset(p->reserve, -1, sizeof(p->reserve));
	reserve_fill(p);
	LIST_INIT(&p->all);
	STAILQ_INIT(&p->asked);
	STAILQ_INIT(&p->drops);
	TAILQ_INIT(&p->carried);
	e->control->porters = p;
	have_parent(p); /* on failure with the first work */
	return 0;
}

/* Gives away what is left, for a limited time: the epoll set is not served any more. */
static void give_away(struct engine *e, struct porters *p)
{
	nanotime end = clock_now() + LIMIT_DROPS_END_MS * TIME_MS;

	while ((!STAILQ_EMPTY(&p->asked) || !STAILQ_EMPTY(&p->drops)) && clock_now() < end) {
		struct epoll_event event;

		look_for_work(p);
		if (epoll_wait(e->control->epoll_fd, &event, 1, 10) == 1)
			((struct watch *)event.data.ptr)->ready(event.data.ptr, event.events);
	}
}

void porters_close(struct engine *e)
{
	struct porters *p = e->control->porters;
	struct porter *o;
	struct drop *d;

	if (p == NULL)
		return;
	give_away(e, p);
	p->looks = true;
	while ((o = LIST_FIRST(&p->all)) != NULL)
		porter_free(o);
	while ((d = STAILQ_FIRST(&p->drops)) != NULL)
		drop_free(p, d);
	watch_remove(e, &p->parent);
	reserve_give(p);
	free(p->spare);
	free(p);
	e->control->porters = NULL;
}
