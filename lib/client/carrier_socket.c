/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library notices the death of the engine without a thread of its own, in one of three ways:
 * a command fails; an event descriptor reaches end of file; or a busy poller finds the heartbeat in
 * the client page late. A late heartbeat may mean a slow engine, so the poller then checks
 * whether the control socket has ended.
 *
 * The atomics here are between threads of this program; none of them orders other memory, so they
 * are relaxed. The words of the client page are read relaxed for the same reason. That is why they
 * are not in lib/queue.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/memory_call.h"
#include "base/time.h"
#include "client/carrier_socket.h"
#include "client/locate.h"
#include "client/log.h"
#include "client/message.h"
#include "client/offer.h"
#include "client/slots.h"
#include "queue/cancel.h"

#define CHECK_EVERY 64u /* calls of empty_poll: about 1,000 empty polls */

struct carrier_socket {
	struct carrier c;
	pthread_mutex_t lock; /* one exchange at a time */
	int fd;
	struct slots slots; /* bell -1: not attached yet */
	ino_t inode; /* of the socket */
	dev_t device;
	uint32_t sequence;
	uint32_t gone;
	uint32_t turns; /* calls of empty_poll; threads may lose counts */
	uint64_t heartbeat; /* as last seen ... */
	nanotime beat_at; /* ... and when it had changed */
	size_t arena_bytes;
	bool crowded; /* there are fewer cores than lcores and pollers */
};

static struct carrier_socket *socket_of(struct carrier *c)
{
	return container_of_type(c, struct carrier_socket, c);
}

static nanotime now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (nanotime)t.tv_sec * TIME_S + (nanotime)t.tv_nsec;
}

static void set_gone(struct carrier_socket *s)
{
	if (__atomic_exchange_n(&s->gone, 1, __ATOMIC_RELAXED) == 0)
		client_info("the engine is gone");
}

/* ERRORCHECK: a signal handler may fork while its thread waits for a reply. */
static void lock_init(struct carrier_socket *s)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&s->lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* A fork may wait behind one command of another thread, not behind those of all of them. */
static int lock_for(struct carrier_socket *s, enum command what)
{
	struct timespec until;

	if (what != COMMAND_LEAVE_PROMOTED)
		return pthread_mutex_lock(&s->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LIMIT_COMMAND_WAIT / 1000;
	return pthread_mutex_clocklock(&s->lock, CLOCK_MONOTONIC, &until);
}

/* The kernel carries descriptors, and the engine executes everything in the order of one queue. */
static int by_socket(struct carrier_socket *s, enum command what, struct command_request *request,
		     size_t request_bytes, struct command_reply *reply, size_t reply_bytes,
		     const struct carrier_descriptors *in, struct carrier_descriptors *out)
{
	int error = s->slots.bell >= 0 ? slots_drain(&s->slots) : 0;

	if (error != 0)
		return error;
	return message_exchange(s->fd, what, ++s->sequence, LIMIT_COMMAND_WAIT, request,
				request_bytes, reply, reply_bytes, in, out);
}

static int by_slot(struct carrier_socket *s, enum command what, struct command_request *request,
		   size_t request_bytes, struct command_reply *reply, size_t reply_bytes,
		   struct carrier_descriptors *out)
{
	ssize_t n;
	int error;

	message_address(request, what, request_bytes, ++s->sequence);
	error = slots_put(&s->slots, request, request_bytes, SLOT_AWAITED);
	if (error != 0)
		return error;
	n = slots_receive(&s->slots, reply, reply_bytes);
	if (n >= 0)
		return message_judge(reply, (size_t)n, reply_bytes, what);
	if (n != -EAGAIN)
		return (int)-n;
	return message_receive(s->fd, what, s->sequence, LIMIT_COMMAND_WAIT, reply, reply_bytes,
			       out);
}

/* 0: the caller has its turn, and unlocks at its end. */
static int take_turn(struct carrier_socket *s, enum command what)
{
	int error = lock_for(s, what);

	if (error != 0 || !__atomic_load_n(&s->gone, __ATOMIC_RELAXED))
		return error;
	pthread_mutex_unlock(&s->lock);
	return ENODEV;
}

static int socket_command(struct carrier *c, enum command what, struct command_request *request,
			  size_t request_bytes, struct command_reply *reply, size_t reply_bytes,
			  const struct carrier_descriptors *in, struct carrier_descriptors *out)
{
	struct carrier_socket *s = socket_of(c);
	int error = take_turn(s, what);

	if (error != 0)
		return error;
	reply->error = 0;
	if (s->slots.bell < 0 || (in != NULL && in->count > 0))
		error = by_socket(s, what, request, request_bytes, reply, reply_bytes, in, out);
	else
		error = by_slot(s, what, request, request_bytes, reply, reply_bytes, out);
	/* ENODEV may also be the engine's answer: no device has the address of a CM id */
	if (error == ENODEV && reply->error != ENODEV)
		set_gone(s);
	pthread_mutex_unlock(&s->lock);
	return error;
}

static int socket_post(struct carrier *c, enum command what, struct command_request *request,
		       size_t request_bytes)
{
	struct carrier_socket *s = socket_of(c);
	int error = take_turn(s, what);

	if (error != 0)
		return error;
	message_address(request, what, request_bytes, ++s->sequence);
	error = slots_put(&s->slots, request, request_bytes, SLOT_POSTED);
	if (error == ENODEV)
		set_gone(s);
	pthread_mutex_unlock(&s->lock);
	return error;
}

/* Between commands only the end of the connection can be readable on the control socket. */
static bool connection_ended(struct carrier_socket *s)
{
	char octet;
	int cancel = cancel_off(); /* the thread that polls holds the lock of its CQ */
	ssize_t n = recv(s->fd, &octet, 1, MSG_PEEK | MSG_DONTWAIT);
	bool ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);

	cancel_restore(cancel);
	return ended;
}

/* A thread that waits for a reply asks this. The caller holds the lock. */
static bool reply_never_comes(void *argument)
{
	struct carrier_socket *s = argument;

	message_skip_late(s->fd, s->sequence);
	return __atomic_load_n(&s->c.page->closed, __ATOMIC_RELAXED) != 0 || connection_ended(s);
}

static void check_heartbeat(struct carrier_socket *s)
{
	uint64_t beat = __atomic_load_n(&s->c.page->heartbeat, __ATOMIC_RELAXED);
	nanotime t;

	if (__atomic_load_n(&s->c.page->closed, __ATOMIC_RELAXED)) {
		set_gone(s);
		return;
	}
	t = now();
	if (beat != __atomic_load_n(&s->heartbeat, __ATOMIC_RELAXED)) {
		__atomic_store_n(&s->heartbeat, beat, __ATOMIC_RELAXED);
		__atomic_store_n(&s->beat_at, t, __ATOMIC_RELAXED);
	} else if (t - __atomic_load_n(&s->beat_at, __ATOMIC_RELAXED) >
		   LIMIT_HEARTBEAT_LATE * TIME_MS) {
		__atomic_store_n(&s->beat_at, t, __ATOMIC_RELAXED);
		if (connection_ended(s))
			set_gone(s);
	}
}

static void socket_empty_poll(struct carrier *c)
{
	struct carrier_socket *s = socket_of(c);
	uint32_t turns = __atomic_load_n(&s->turns, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&s->turns, turns, __ATOMIC_RELAXED);
	if (turns % CHECK_EVERY == 0)
		check_heartbeat(s);
	offer_core(c->page, c->lcores, s->crowded);
}

static bool socket_gone(struct carrier *c)
{
	return __atomic_load_n(&socket_of(c)->gone, __ATOMIC_RELAXED) != 0;
}

static void socket_ended(struct carrier *c)
{
	set_gone(socket_of(c));
}

static void socket_free(struct carrier_socket *s)
{
	for (uint32_t i = 0; i < s->c.lcores; i++) {
		if (s->c.wake_fd[i] >= 0)
			close(s->c.wake_fd[i]);
	}
	if (s->c.arena != NULL)
		memory_unmap(s->c.arena, s->arena_bytes);
	if (s->slots.bell >= 0)
		close(s->slots.bell);
	if (s->fd >= 0)
		close(s->fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void socket_release(struct carrier *c)
{
	socket_free(socket_of(c));
}

static const struct carrier_ops socket_ops = {
	.command = socket_command,
	.post = socket_post,
	.empty_poll = socket_empty_poll,
	.gone = socket_gone,
	.ended = socket_ended,
	.release = socket_release,
};

/*
 * Some programs close all descriptors that they do not know. The numbers may then be other files'.
 * The socket tells it for all, because eventfds have no inodes of their own.
 */
static bool fds_are_ours(const struct carrier_socket *s)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && st.st_ino == s->inode && st.st_dev == s->device;
}

void carrier_socket_abandon(struct carrier *c)
{
	struct carrier_socket *s = socket_of(c);
	bool ours = fds_are_ours(s);

	lock_init(s);
	__atomic_store_n(&s->gone, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < c->lcores; i++) {
		if (ours)
			close(c->wake_fd[i]);
		c->wake_fd[i] = -1;
	}
	if (ours && s->slots.bell >= 0)
		close(s->slots.bell);
	s->slots.bell = -1;
	if (ours)
		close(s->fd);
	s->fd = -1;
}

int carrier_socket_query(const char *path, struct reply_device *out)
{
	struct request_empty request = { 0 };
	int fd = message_connect_within(path, LIMIT_QUERY_WAIT);
	int error;

	if (fd < 0) {
		error = errno;
		client_info("no engine at %s: %s", path, strerror(error));
		return error;
	}
	error = message_exchange(fd, COMMAND_DEVICE, 1, LIMIT_QUERY_WAIT, &request.h,
				 sizeof(request), &out->h, sizeof(*out), NULL, NULL);
	close(fd);
	return error;
}

static bool has_room_for_all(uint32_t lcores)
{
	cpu_set_t set;
	int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	/*
	 * The engine's lcores, this program, a peer on the same host, and the rest of the system.
	 */
	return (uint32_t)cpus >= lcores + 3;
}

/* The program sees ENOMEM only, with memory enough: its limit is of addresses. */
static void warn_of_addresses(size_t octets)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return;
	client_warn(
		"the queues need %zu MiB of addresses, which use no memory by themselves, and this "
		"program may have %ju MiB in all: raise its limit (ulimit -v)",
		octets >> 20, (uintmax_t)limit.rlim_cur >> 20);
}

static int accept_hello(struct carrier_socket *s, const struct reply_hello *reply,
			struct carrier_descriptors *received)
{
	void *arena;

	if (reply->lcores == 0 || reply->lcores > LIMIT_LCORES ||
	    received->count != 2 + reply->lcores || reply->arena_bytes < sizeof(struct client_page))
		return EPROTO;
	arena = memory_map(NULL, reply->arena_bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_NORESERVE, received->fd[0], 0);
	if (arena == MAP_FAILED) {
		int error = errno;

		if (error == ENOMEM)
			warn_of_addresses(reply->arena_bytes);
		return error;
	}
	/* a core file of the program would give memory to each page of the queues, to read zeros in it */
	memory_advise(arena, reply->arena_bytes, MADV_DONTDUMP);
	close(received->fd[0]);
	received->fd[0] = -1;
	s->arena_bytes = reply->arena_bytes;
	s->c.arena = arena;
	s->c.page = arena;
	s->c.client = reply->client;
	s->c.engine_id = reply->engine_id;
	s->c.lcores = reply->lcores;
	for (uint32_t i = 0; i < reply->lcores; i++) {
		s->c.bell[i] = (struct rte_ring *)(void *)((char *)arena + reply->bell_offset[i]);
		s->c.wake_fd[i] = received->fd[1 + i];
		received->fd[1 + i] = -1;
	}
	s->slots.shared = (void *)((char *)arena + reply->slots_offset);
	s->slots.ended = reply_never_comes;
	s->slots.argument = s;
	s->slots.bell = received->fd[1 + reply->lcores];
	received->fd[1 + reply->lcores] = -1;
	s->crowded = !has_room_for_all(reply->lcores);
	s->beat_at = now();
	return 0;
}

static void name_program(char *name, size_t octets)
{
	strncpy(name, program_invocation_short_name, octets - 1);
	name[octets - 1] = '\0';
}

static const char *memory_advice(int error)
{
	if (error == ENOENT)
		return "mount /proc there, open the device before chroot(2), or run the engine as "
		       "root";
	return "open the device before changing the user, call prctl(PR_SET_DUMPABLE, 1) after "
	       "changing it, or run the engine as root";
}

/* HELLO once more, with a descriptor of our memory, for an engine that may not open it itself. */
static int pass_memory(struct carrier_socket *s, struct request_hello *request,
		       struct reply_hello *reply, struct carrier_descriptors *received)
{
	struct carrier_descriptors memory = { .count = 1 };
	int error;

	memory.fd[0] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (memory.fd[0] < 0) {
		error = errno;
		client_warn("cannot open /proc/self/mem (%s), and the engine may not open it "
			    "either: %s",
			    strerror(error), memory_advice(error));
		return error;
	}
	error = socket_command(&s->c, COMMAND_HELLO, &request->h, sizeof(*request), &reply->h,
			       sizeof(*reply), &memory, received);
	close(memory.fd[0]);
	return error;
}

static int say_hello(struct carrier_socket *s)
{
	struct request_hello request = { .pid = (uint32_t)getpid() };
	struct carrier_descriptors received = { 0 };
	struct reply_hello reply;
	int error;

	name_program(request.program, sizeof(request.program));
	message_prove(request.proof);
	request.proof_at = message_proof_at();
	error = socket_command(&s->c, COMMAND_HELLO, &request.h, sizeof(request), &reply.h,
			       sizeof(reply), NULL, &received);
	if (error == EACCES)
		error = pass_memory(s, &request, &reply, &received);
	if (error == 0)
		error = accept_hello(s, &reply, &received);
	for (uint32_t i = 0; i < received.count; i++) {
		if (received.fd[i] >= 0)
			close(received.fd[i]);
	}
	return error;
}

/*
 * Attaching gives the engine access to this process's memory. So a path that another process passed
 * on is trusted only if root or this user listens there.
 */
static bool listener_is_trusted(int fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
	       (who.uid == 0 || (who.uid == geteuid() && !locate_has_more_rights()));
}

static void note_socket(struct carrier_socket *s)
{
	struct stat st;

	if (fstat(s->fd, &st) != 0)
		return; /* nothing has inode 0: a fork's child keeps the descriptors */
	s->inode = st.st_ino;
	s->device = st.st_dev;
}

int carrier_socket_attach(const char *path, bool passed_on, struct carrier **out)
{
	struct carrier_socket *s = calloc(1, sizeof(*s));
	int error;

	if (s == NULL)
		return ENOMEM;
	s->c.ops = &socket_ops;
	lock_init(s);
	s->slots.bell = -1;
	s->fd = message_connect(path);
	if (s->fd < 0)
		error = errno;
	else if (passed_on && !listener_is_trusted(s->fd))
		error = EACCES;
	else
		error = say_hello(s);
	if (error != 0) {
		client_info("cannot attach to the engine at %s: %s", path, strerror(error));
		socket_free(s);
		return error;
	}
	note_socket(s);
	client_info("attached to the engine at %s", path);
	*out = &s->c;
	return 0;
}
