/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "client/log.h"
#include "client/message.h"

union descriptor_space {
	struct cmsghdr align;
	char octets[CMSG_SPACE(LIMIT_COMMAND_FDS * sizeof(int))];
};

const char *command_name(enum command what)
{
	static const char *const names[] = {
#define X(NAME, request, reply) #NAME,
		COMMANDS(X)
#undef X
	};

	return (uint32_t)what < COMMAND_COUNT ? names[what] : "?";
}

void message_prove(uint8_t proof[16])
{
	const void *octets = (const void *)getauxval(AT_RANDOM);

	memset(proof, 0, 16);
	if (octets != NULL)
		memcpy(proof, octets, 16);
}

uint64_t message_proof_at(void)
{
	return getauxval(AT_RANDOM);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* For calls that this connection blocks in: connect(2) and sendmsg(2), or recvmsg(2). */
static void limit_wait(int fd, int option, int64_t ms)
{
	const struct timeval wait = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	setsockopt(fd, SOL_SOCKET, option, &wait, sizeof(wait));
}

/* A stopped engine accepts nothing: once its queue of connections is full, connect(2) waits. */
static int connect_within(int fd, const char *path, int timeout_ms)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int64_t until = now_ms() + timeout_ms, left;

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	while ((left = until - now_ms()) > 0) {
		limit_wait(fd, SO_SNDTIMEO, left);
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			return 0;
		if (errno != EINTR && errno != EAGAIN)
			return errno;
	}
	return ETIMEDOUT;
}

int message_connect_within(const char *path, int timeout_ms)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return -1;
	error = connect_within(fd, path, timeout_ms);
	if (error != 0) {
		close(fd);
		errno = error;
		return -1;
	}
	limit_wait(fd, SO_SNDTIMEO, LIMIT_COMMAND_WAIT);
	limit_wait(fd, SO_RCVTIMEO, LIMIT_COMMAND_WAIT); /* receive_reply */
	return fd;
}

int message_connect(const char *path)
{
	return message_connect_within(path, LIMIT_COMMAND_WAIT);
}

static int send_request(int fd, const struct command_request *request, size_t bytes,
			const struct carrier_descriptors *in)
{
	struct iovec iov = { (void *)(uintptr_t)request, bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	union descriptor_space space;
	ssize_t n;

	if (in != NULL && in->count > 0) {
		size_t octets = in->count * sizeof(int);
		struct cmsghdr *c;

		assert(in->count <= LIMIT_COMMAND_FDS && "callers stay within the limit");
		memset(&space, 0, sizeof(space));
		message.msg_control = &space;
		message.msg_controllen = CMSG_SPACE(octets);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(octets);
		memcpy(CMSG_DATA(c), in->fd, octets);
	}
	do {
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)bytes)
		return 0;
	if (errno == EAGAIN)
		return ETIMEDOUT; /* the engine has not read earlier requests */
	return errno == EPIPE || errno == ECONNRESET ? ENODEV : errno;
}

static void close_all(struct carrier_descriptors *d)
{
	for (uint32_t i = 0; i < d->count; i++)
		close(d->fd[i]);
	d->count = 0;
}

static void take_descriptors(struct msghdr *message, struct carrier_descriptors *out)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (out->count < LIMIT_COMMAND_FDS)
				out->fd[out->count++] = fd;
			else
				close(fd);
		}
	}
}

static int wait_readable(int fd, int64_t until)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		int64_t left = until - now_ms();
		int n = left <= 0 ? 0 : poll(&p, 1, (int)left);

		if (n > 0)
			return 0;
		if (n == 0)
			return ETIMEDOUT;
		if (errno != EINTR)
			return errno;
	}
}

static bool is_first_reset(bool *was)
{
	bool first = errno == ECONNRESET && !*was;

	*was |= first;
	return first;
}

/*
 * Returns the octets received, or a negative errno. The socket itself waits for a reply that comes
 * in the usual time, which saves a system call for each command.
 */
static ssize_t receive_reply(int fd, struct command_reply *reply, size_t bytes,
			     struct carrier_descriptors *out, int64_t until, bool as_usual)
{
	struct iovec iov = { reply, bytes };
	union descriptor_space space;
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &space,
				  .msg_controllen = sizeof(space) };
	int error = as_usual ? 0 : wait_readable(fd, until);
	bool reset = false;
	ssize_t n;

	if (error != 0)
		return -error;
	/* An engine that closes a socket without reading it has refused us: the reply is behind the error. */
	do {
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && ((errno == EINTR && now_ms() < until) || is_first_reset(&reset)));
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return -ENODEV;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -ETIMEDOUT : -errno;
	take_descriptors(&message, out);
	return n;
}

/* Whether this is a reply of our protocol and version, to whatever request. */
static int judge_header(const struct command_reply *reply, size_t received)
{
	if (received < sizeof(*reply) || reply->magic != COMMAND_MAGIC)
		return EPROTO;
	if (reply->version == COMMAND_VERSION)
		return 0;
	client_warn("the engine has version %u of the control protocol, this library has "
		    "version %u: install both from the same release",
		    reply->version, COMMAND_VERSION);
	return EPROTO;
}

static int judge_reply(const struct command_reply *reply, size_t received, size_t expected,
		       enum command what)
{
	if (reply->error != 0) {
		client_info("%s: %s%s%.*s", command_name(what), strerror(reply->error),
			    reply->why[0] ? ": " : "", (int)sizeof(reply->why), reply->why);
		return reply->error > 0 ? reply->error : EPROTO;
	}
	return received < expected ? EPROTO : 0;
}

int message_judge(const struct command_reply *reply, size_t received, size_t expected,
		  enum command what)
{
	int error = judge_header(reply, received);

	return error != 0 ? error : judge_reply(reply, received, expected, what);
}

/* Waits for the reply with this number. Replies to requests that timed out may come before it. */
static int await_reply(int fd, enum command what, uint32_t sequence, int timeout_ms,
		       struct command_reply *reply, size_t reply_bytes,
		       struct carrier_descriptors *received)
{
	bool as_usual = timeout_ms == LIMIT_COMMAND_WAIT;
	int64_t until = now_ms() + timeout_ms;

	for (;;) {
		ssize_t n = receive_reply(fd, reply, reply_bytes, received, until, as_usual);
		int error = n < 0 ? (int)-n : judge_header(reply, (size_t)n);

		if (error != 0)
			return error;
		if (reply->sequence == sequence)
			return judge_reply(reply, (size_t)n, reply_bytes, what);
		close_all(received);
	}
}

int message_receive(int fd, enum command what, uint32_t sequence, int timeout_ms,
		    struct command_reply *reply, size_t reply_bytes,
		    struct carrier_descriptors *out)
{
	struct carrier_descriptors received = { 0 };
	int error = await_reply(fd, what, sequence, timeout_ms, reply, reply_bytes, &received);

	if (error == 0 && out != NULL)
		*out = received;
	else
		close_all(&received);
	return error;
}

void message_skip_late(int fd, uint32_t sequence)
{
	struct carrier_descriptors received = { 0 };
	struct command_reply reply;
	ssize_t n = recv(fd, &reply, sizeof(reply), MSG_PEEK | MSG_DONTWAIT);

	if (n < (ssize_t)sizeof(reply) || reply.sequence == sequence)
		return;
	receive_reply(fd, &reply, sizeof(reply), &received, 0, true);
	close_all(&received);
}

void message_address(struct command_request *request, enum command what, size_t octets,
		     uint32_t sequence)
{
	request->magic = COMMAND_MAGIC;
	request->version = COMMAND_VERSION;
	request->command = (uint16_t)what;
	request->length = (uint32_t)octets;
	request->sequence = sequence;
}

int message_exchange(int fd, enum command what, uint32_t sequence, int timeout_ms,
		     struct command_request *request, size_t request_bytes,
		     struct command_reply *reply, size_t reply_bytes,
		     const struct carrier_descriptors *in, struct carrier_descriptors *out)
{
	int error;

	message_address(request, what, request_bytes, sequence);
	error = send_request(fd, request, request_bytes, in);
	if (error != 0)
		return error;
	return message_receive(fd, what, sequence, timeout_ms, reply, reply_bytes, out);
}
