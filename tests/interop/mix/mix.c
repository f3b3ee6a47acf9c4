/* SPDX-License-Identifier: BSD-3-Clause */
#include "mix.h"

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connected(const char *address, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct timeval patience = { .tv_sec = MIX_PATIENCE };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1, other = fd;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0)
		err(1, "socket");
	if (strcmp(address, "-") == 0) {
		if (bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(fd, 1) != 0 ||
		    (other = accept(fd, NULL, NULL)) < 0)
			err(1, "port %u", port);
		close(fd);
	} else if (inet_pton(AF_INET, address, &a.sin_addr) != 1 ||
		   connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
		err(1, "%s, port %u", address, port);
	}
	if (setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0 ||
	    setsockopt(other, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
		err(1, "options of a socket");
	return other;
}

int main(int argc, char **argv)
{
	static struct mix m;
	uint64_t unreliable = 0;
	unsigned int i;

	if (argc < 8)
		errx(2, "usage: mix PORT ADDRESS|- SEED ROUNDS REQUESTS MTU GID-INDEX [unordered]");
	m.role = strcmp(argv[2], "-") != 0;
	m.script.seed = strtoull(argv[3], NULL, 0);
	m.script.rounds = (uint32_t)atoi(argv[4]);
	m.script.per_round = (uint32_t)atoi(argv[5]);
	m.script.mtu = (uint32_t)atoi(argv[6]);
	m.gid_index = (unsigned int)atoi(argv[7]);
	m.unordered = argc > 8;
	m.tcp = connected(argv[2], (uint16_t)atoi(argv[1]));
	mix_open(&m);
	for (; m.round < m.script.rounds; m.round++) {
		mix_prepare_round(&m);
		mix_run_round(&m);
		mix_check_memory(&m);
	}
	m.round--;
	mix_check_end(&m);
	for (i = MIX_RC; i < MIX_QPS; i++)
		unreliable += m.qps[i].arrived;
	printf("%ju completions, %ju messages, %ju unreliable ones\n", (uintmax_t)m.completions,
	       (uintmax_t)m.received, (uintmax_t)unreliable);
	return 0;
}
