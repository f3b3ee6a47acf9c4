/* SPDX-License-Identifier: BSD-3-Clause */
#include "locate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bits.h"

int engine_connect(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct timeval bound = { .tv_sec = 5 };
	int fd;

	if (strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	strcpy(at.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

static int refuse(int error, char *why, size_t why_size, const char *text)
{
	snprintf(why, why_size, "%s", text);
	return error;
}

int engine_ask(int fd, enum command what, struct command_reply *reply, size_t reply_bytes,
	       char *why, size_t why_size)
{
	struct request_empty request = { .h = { .command = (uint16_t)what,
						.length = sizeof(request) } };

	return engine_call(fd, &request.h, reply, reply_bytes, why, why_size);
}

int engine_call(int fd, struct command_request *request, struct command_reply *reply,
		size_t reply_bytes, char *why, size_t why_size)
{
	return engine_call_for_file(fd, request, reply, reply_bytes, NULL, why, why_size);
}

/* As recv(), whatever signals come. The descriptor that comes along is *file. */
static ssize_t receive(int fd, void *octets, size_t size, int *file)
{
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(sizeof(int))];
	} space;
	struct iovec iov = { octets, size };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = file != NULL ? &space : NULL,
				  .msg_controllen = file != NULL ? sizeof(space) : 0 };
	const struct cmsghdr *c;
	ssize_t got;

	do
		got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	c = got >= 0 && file != NULL ? CMSG_FIRSTHDR(&message) : NULL;
	if (c != NULL && c->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(c), sizeof(*file));
	return got;
}

int engine_call_for_file(int fd, struct command_request *request, struct command_reply *reply,
			 size_t reply_bytes, int *file, char *why, size_t why_size)
{
	ssize_t sent, got;

	if (file != NULL)
		*file = -1;
	request->magic = COMMAND_MAGIC;
	request->version = COMMAND_VERSION;
	memset(reply, 0, reply_bytes);
	do
		sent = send(fd, request, request->length, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent != (ssize_t)request->length)
		return refuse(errno, why, why_size, "cannot send a command to the engine");
	got = receive(fd, reply, reply_bytes, file);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return refuse(ETIMEDOUT, why, why_size, "the engine did not answer within 5 s");
	if (got < (ssize_t)sizeof(*reply) || reply->magic != COMMAND_MAGIC)
		return refuse(EPROTO, why, why_size,
			      "the server at this socket is not a uroce engine");
	if (reply->version != COMMAND_VERSION) {
		snprintf(why, why_size,
			 "the engine has protocol version %u, this program version %u: "
			 "install the same uroce for both",
			 reply->version, COMMAND_VERSION);
		return EPROTO;
	}
	reply->why[sizeof(reply->why) - 1] = '\0';
	if (reply->error != 0)
		return refuse(reply->error, why, why_size,
			      reply->why[0] != '\0' ? reply->why : strerror(reply->error));
	if (got < (ssize_t)reply_bytes)
		return refuse(EPROTO, why, why_size, "the engine's answer is truncated");
	return 0;
}

static int owner_check(const char *folder, char *why, size_t why_size)
{
	struct stat st;

	if (lstat(folder, &st) != 0) {
		snprintf(why, why_size, "%s: %s", folder, strerror(errno));
		return errno;
	}
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
		snprintf(
			why, why_size,
			"%s must be your own directory with mode 0700 (owner %u, mode %o): remove it",
			folder, (unsigned int)st.st_uid, (unsigned int)st.st_mode & 07777);
		return EACCES;
	}
	return 0;
}

int engine_own_place(bool make, struct engine_place *where, char *why, size_t why_size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char folder[96];
	int length;

	where->chosen = false;
	where->own = true;
	where->path[0] = '\0';
	if (runtime != NULL && runtime[0] == '/')
		length = snprintf(folder, sizeof(folder), "%s/uroce", runtime);
	else
		length = snprintf(folder, sizeof(folder), "/tmp/uroce-%u", (unsigned int)geteuid());
	if (length >= (int)sizeof(folder)) {
		snprintf(why, why_size,
			 "$XDG_RUNTIME_DIR is too long: %.120s/uroce/uroced.sock: "
			 "a socket path is limited to %zu octets",
			 runtime, sizeof(where->path) - 1);
		return ENAMETOOLONG;
	}
	snprintf(where->path, sizeof(where->path), "%s/uroced.sock", folder);
	if (make && mkdir(folder, 0700) != 0 && errno != EEXIST) {
		snprintf(why, why_size, "%s: %s", folder, strerror(errno));
		return errno;
	}
	return owner_check(folder, why, why_size);
}

int engine_try(const char *path, struct reply_device *device, char *why, size_t why_size)
{
	char reason[128];
	int fd = engine_connect(path), error;

	if (fd < 0) {
		snprintf(why, why_size, "%s: %s", path,
			 fd == -ECONNREFUSED || fd == -ENOENT ? "no engine answers there"
							      : strerror(-fd));
		return -fd;
	}
	error = engine_ask(fd, COMMAND_DEVICE, &device->h, sizeof(*device), reason, sizeof(reason));
	close(fd);
	if (error != 0)
		snprintf(why, why_size, "%s: %s", path, reason);
	return error;
}

static int try_chosen(const char *path, struct engine_place *where, struct reply_device *device,
		      char *why, size_t why_size)
{
	where->chosen = true;
	where->own = where->refused = false;
	if (strlen(path) >= sizeof(where->path)) {
		snprintf(why, why_size, "%.40s...: a socket path is limited to %zu octets", path,
			 sizeof(where->path) - 1);
		return ENAMETOOLONG;
	}
	strcpy(where->path, path);
	return engine_try(path, device, why, why_size);
}

int engine_locate(const char *chosen, struct engine_place *where, struct reply_device *device,
		  char *why, size_t why_size)
{
	const char *environment = getenv("UROCE_SOCKET");
	int error;

	if (chosen == NULL && environment != NULL && environment[0] != '\0')
		chosen = environment;
	if (chosen != NULL)
		return try_chosen(chosen, where, device, why, why_size);

	*where = (struct engine_place){ .path = SYSTEM_SOCKET };
	error = engine_try(SYSTEM_SOCKET, device, why, why_size);
	if (error == 0)
		return 0;
	where->refused = error == EACCES || error == EPERM;
	error = engine_own_place(false, where, why, why_size);
	if (error == 0)
		error = engine_try(where->path, device, why, why_size);
	if (error == ENOENT || error == ECONNREFUSED)
		snprintf(why, why_size, "no engine answers at " SYSTEM_SOCKET " or %s",
			 where->path);
	return error;
}

const char *address_of_gid(const struct gid *g, char *text, size_t size)
{
	static const uint8_t free_entry[16], mapped[12] = { [10] = 0xff, [11] = 0xff };

	text[0] = '\0';
	if (memcmp(g->octet, free_entry, 16) == 0)
		return text;
	if (memcmp(g->octet, mapped, 12) == 0)
		return inet_ntop(AF_INET, g->octet + 12, text, (socklen_t)size);
	return inet_ntop(AF_INET6, g->octet, text, (socklen_t)size);
}

void engine_describe(const struct reply_device *device, char *text, size_t size)
{
	uint32_t entries = MIN_OF(device->gid_count, (uint32_t)LIMIT_GIDS);
	uint32_t mtu = device->active_mtu <= 5 ? 128u << device->active_mtu : 0;
	char address[INET6_ADDRSTRLEN];
	size_t used;

	used = (size_t)snprintf(text, size, "%.31s (", device->name);
	for (uint32_t i = 0, shown = 0; i < entries && used < size; i++) {
		if (address_of_gid(&device->gid[i], address, sizeof(address))[0] == '\0')
			continue;
		used += (size_t)snprintf(text + used, size - used, "%s%s", shown++ ? ", " : "",
					 address);
	}
	if (used < size)
		snprintf(text + used, size - used, "), IB MTU %u", mtu);
}
