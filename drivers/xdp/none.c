/* SPDX-License-Identifier: BSD-3-Clause */
/* Used instead of xdp.c if clang or libbpf was missing when uroce was built. */
#include "drivers/xdp/xdp.h"

#include <errno.h>
#include <stdio.h>

bool xdp_usable(const char *iface, uint32_t ifindex, uint16_t queues, char *why, size_t why_size)
{
	snprintf(why, why_size, "uroce was built without XDP (it needs clang and libbpf)");
	return false;
}

uint32_t xdp_queues(uint32_t ifindex)
{
	return 1;
}

int xdp_program_file(void)
{
	errno = ENOSYS;
	return -1;
}

struct xdp *xdp_take(uint32_t ifindex, char *why, size_t why_size)
{
	return NULL;
}

void xdp_set_addresses(struct xdp *x, const struct port *p)
{
}

void xdp_release(struct xdp *x)
{
}
