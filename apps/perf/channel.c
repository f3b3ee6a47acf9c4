/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define BACKLOG	      8
#define CONNECT_LIMIT 10u /* seconds */
#define MAPPED	      "::ffff:"

/* A host that has vanished is noticed within half a minute. */
static void keep_alive(int fd)
{
	int one = 1, idle = 10, interval = 5, probes = 3;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int channel_listen(uint16_t *port, char *why, size_t why_size)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(*port) };
	struct sockaddr_in at_v4 = { .sin_family = AF_INET, .sin_port = htons(*port) };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, none = 0;
	bool v6 = fd >= 0;
	int error;

	if (!v6)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* a kernel without IPv6 */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof(none));
	error = v6 ? bind(fd, (struct sockaddr *)&at, sizeof(at))
		   : bind(fd, (struct sockaddr *)&at_v4, sizeof(at_v4));
	if (error == 0)
		error = listen(fd, BACKLOG);
	if (error != 0) {
		snprintf(why, why_size, "TCP port %u: %s", *port, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	/* the port stands at the same place in both */
	if (getsockname(fd, (struct sockaddr *)&at, &size) == 0)
		*port = ntohs(at.sin6_port);
	return fd;
}

int channel_accept(int listener, uint32_t seconds, char *who, size_t who_size)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);
	int fd;

	while (poll(&p, 1, seconds > 0 ? (int)seconds * 1000 : -1) < 0)
		if (errno != EINTR)
			return -1;
	if (p.revents == 0)
		return -1;
	fd = accept4(listener, (struct sockaddr *)&from, &size, SOCK_CLOEXEC);
	if (fd < 0)
		return -1;
	keep_alive(fd);
	if (getnameinfo((struct sockaddr *)&from, size, who, (socklen_t)who_size, NULL, 0,
			NI_NUMERICHOST) != 0)
		snprintf(who, who_size, "?");
	if (strncmp(who, MAPPED, strlen(MAPPED)) == 0) /* as people write it */
		memmove(who, who + strlen(MAPPED), strlen(who + strlen(MAPPED)) + 1);
	return fd;
}

/* A limit of sending bounds connect(2), too. */
void channel_limit(int fd, uint32_t seconds)
{
	struct timeval limit = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static int connect_one(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	channel_limit(fd, CONNECT_LIMIT);
	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
		keep_alive(fd);
		return fd;
	}
	if (errno == EINPROGRESS)
		errno = ETIMEDOUT;
	close(fd);
	return -1;
}

int channel_connect(const char *host, uint16_t port, char *why, size_t why_size)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	char service[8];
	int fd = -1, error;

	snprintf(service, sizeof(service), "%u", port);
	error = getaddrinfo(host, service, &hints, &list);
	if (error != 0) {
		snprintf(why, why_size, "%s: %s", host, gai_strerror(error));
		return -1;
	}
	for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
		fd = connect_one(a);
	if (fd < 0)
		snprintf(why, why_size, "%s, TCP port %u: %s: run `uroce perf --server` there",
			 host, port, strerror(errno));
	freeaddrinfo(list);
	return fd;
}

bool channel_put(int fd, const void *data, size_t size)
{
	const char *from = data;
	ssize_t n;

	for (; size > 0; from += n, size -= (size_t)n) {
		n = send(fd, from, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

bool channel_get(int fd, void *data, size_t size)
{
	char *to = data;
	ssize_t n;

	for (; size > 0; to += n, size -= (size_t)n) {
		n = recv(fd, to, size, 0);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

bool channel_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

uint32_t channel_family(int fd)
{
	struct sockaddr_in6 to = { 0 };
	socklen_t size = sizeof(to);

	if (getpeername(fd, (struct sockaddr *)&to, &size) != 0)
		return 0;
	if (to.sin6_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&to.sin6_addr))
		return FAMILY_IPV4;
	return to.sin6_family == AF_INET6 ? FAMILY_IPV6 : 0;
}
