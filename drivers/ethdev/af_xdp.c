/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_af_xdp has no rx interrupts, and the frames that it receives never reach a packet socket
 * (bell.c). Its own sockets become readable when frames arrive, but the driver does not say which
 * descriptors they are. So they are found among the descriptors of this process: the socket of a
 * queue is the one that is there after rte_eth_rx_queue_setup() and was not there before.
 */
#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/ethdev/private.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

static bool is_af_xdp(int fd)
{
	socklen_t size = sizeof(int);
	int domain = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_XDP;
}

void af_xdp_sockets_find(struct af_xdp_sockets *all)
{
	DIR *open = opendir("/proc/self/fd");
	struct dirent *d;

	all->count = 0;
	while (open != NULL && all->count < AF_XDP_SOCKETS && (d = readdir(open)) != NULL) {
		int fd = atoi(d->d_name);

		if (d->d_name[0] != '.' && is_af_xdp(fd))
			all->fd[all->count++] = fd;
	}
	if (open != NULL)
		closedir(open);
}

static bool has(const struct af_xdp_sockets *all, int fd)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (all->fd[i] == fd)
			return true;
	return false;
}

int af_xdp_socket_new(const struct af_xdp_sockets *before)
{
	struct af_xdp_sockets now;

	af_xdp_sockets_find(&now);
	for (uint32_t i = 0; i < now.count; i++)
		if (!has(before, now.fd[i]))
			return now.fd[i];
	return -1;
}
