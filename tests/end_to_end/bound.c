/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits until a port of rdma_cm is taken at an address: a server is there.
 * usage: bound ADDRESS PORT tcp|udp
 */
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TRIES 2000 /* of 10 ms */

static int is_taken(const struct addrinfo *where, enum rdma_port_space space)
{
	struct rdma_cm_id *id;
	int status;

	if (rdma_create_id(NULL, &id, NULL, space) != 0)
		return -1;
	status = rdma_bind_addr(id, where->ai_addr);
	if (status != 0)
		status = errno == EADDRINUSE ? 1 : -1;
	rdma_destroy_id(id);
	return status;
}

int main(int argc, char **argv)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	struct addrinfo *where;
	int status = 0;

	if (argc != 4 || getaddrinfo(argv[1], argv[2], NULL, &where) != 0)
		return 2;
	for (int i = 0; i < TRIES && status == 0; i++) {
		status = is_taken(where, strcmp(argv[3], "udp") == 0 ? RDMA_PS_UDP : RDMA_PS_TCP);
		if (status == 0)
			nanosleep(&nap, NULL);
	}
	if (status < 0)
		perror("bound");
	freeaddrinfo(where);
	return status == 1 ? 0 : 1;
}
