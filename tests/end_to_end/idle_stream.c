/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream over which nothing is sent. Each end says "connected", waits until it can read, and says
 * what it read: the end of the stream, or an error.
 * usage: idle_stream server|client ADDRESS PORT KEEPIDLE
 * KEEPIDLE: seconds; 0: no keep-alives.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what)
{
	perror(what);
	return 1;
}

/* The connected socket; -1 with errno. */
static int accept_one(const struct sockaddr_in *a)
{
	int listener = rsocket(AF_INET, SOCK_STREAM, 0);

	if (listener < 0 || rbind(listener, (const struct sockaddr *)a, sizeof(*a)) != 0 ||
	    rlisten(listener, 1) != 0)
		return -1;
	puts("listening");
	return raccept(listener, NULL, NULL);
}

static int call(const struct sockaddr_in *a)
{
	int s = rsocket(AF_INET, SOCK_STREAM, 0);

	return s >= 0 && rconnect(s, (const struct sockaddr *)a, sizeof(*a)) == 0 ? s : -1;
}

static int keep_alive(int s, int seconds)
{
	int on = 1;

	if (seconds == 0)
		return 0;
	if (rsetsockopt(s, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds)) != 0)
		return -1;
	return rsetsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct pollfd p = { .events = POLLIN };
	char octet;
	ssize_t n;

	if (argc != 5 || inet_pton(AF_INET, argv[2], &a.sin_addr) != 1)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	a.sin_port = htons((uint16_t)atoi(argv[3]));
	p.fd = strcmp(argv[1], "server") == 0 ? accept_one(&a) : call(&a);
	if (p.fd < 0)
		return fail("connect");
	if (keep_alive(p.fd, atoi(argv[4])) != 0)
		return fail("rsetsockopt");
	puts("connected");
	if (rpoll(&p, 1, -1) != 1)
		return fail("rpoll");
	n = rrecv(p.fd, &octet, 1, 0);
	printf("%s\n", n < 0 ? strerror(errno) : n == 0 ? "end" : "data");
	return 0;
}
