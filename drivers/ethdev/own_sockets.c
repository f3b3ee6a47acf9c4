/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's drivers do not say which sockets they have opened. So these are found among the descriptors
 * of this process. net_af_xdp has no rx interrupts, and its frames never reach a packet socket
 * (bell.c), but its sockets become readable when frames arrive. The socket of a queue is the one that
 * is there after rte_eth_rx_queue_setup() and was not there before. packet_rings.c says why those of
 * net_af_packet are needed.
 */
#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/ethdev/private.h"

static bool is_of(int fd, int domain)
{
	socklen_t size = sizeof(int);
	int found = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &found, &size) == 0 && found == domain;
}

void own_sockets_find(int domain, struct own_sockets *all)
{
	DIR *open = opendir("/proc/self/fd");
	struct dirent *d;

	all->count = 0;
	while (open != NULL && all->count < OWN_SOCKETS && (d = readdir(open)) != NULL) {
		int fd = atoi(d->d_name);

		if (d->d_name[0] != '.' && is_of(fd, domain))
			all->fd[all->count++] = fd;
	}
	if (open != NULL)
		closedir(open);
}

static bool has(const struct own_sockets *all, int fd)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (all->fd[i] == fd)
			return true;
	return false;
}

int own_socket_new(int domain, const struct own_sockets *before)
{
	struct own_sockets now;

	own_sockets_find(domain, &now);
	for (uint32_t i = 0; i < now.count; i++)
		if (!has(before, now.fd[i]))
			return now.fd[i];
	return -1;
}
