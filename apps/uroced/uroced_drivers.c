/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_drivers.h"

#include <dlfcn.h>

#include "base/bits.h"
#include "drivers/driver_file.h"

static bool few;

void drivers_leave_out(bool those_of_ports)
{
	few = those_of_ports;
}

/* --mbuf-pool-ops-name may name any of these kinds of mempools. */
static const char *const without_port[] = {
	"bus_vdev.so",	    "mempool_bucket.so", "mempool_ring.so",
	"mempool_stack.so", "net_af_packet.so",	 "net_af_xdp.so",
};

/*
 * Stands before libc's. A driver that is left out counts as loaded: the EAL gets the handle of the program, and ends if it
 * gets none.
 */
__attribute__((visibility("default"))) void *dlopen(const char *file, int mode)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

	if (few && driver_file_is_other(file, without_port, ARRAY_SIZE(without_port)))
		file = NULL;
	return next(file, mode);
}
