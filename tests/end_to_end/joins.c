/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joins a multicast group through rdma_cm, with an id without a queue pair, and leaves it at
 * SIGTERM.
 * usage: joins OWN-ADDRESS GROUP
 */
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *own, *group;
	struct rdma_cm_id *id;
	sigset_t end;
	int number;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	if (argc != 3 || getaddrinfo(argv[1], NULL, &hints, &own) != 0 ||
	    getaddrinfo(argv[2], NULL, &hints, &group) != 0)
		return 2;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP) != 0 ||
	    rdma_bind_addr(id, own->ai_addr) != 0 ||
	    rdma_join_multicast(id, group->ai_addr, NULL) != 0 || sigwait(&end, &number) != 0 ||
	    rdma_leave_multicast(id, group->ai_addr) != 0 || rdma_destroy_id(id) != 0) {
		perror("joins");
		return 1;
	}
	freeaddrinfo(own);
	freeaddrinfo(group);
	return 0;
}
