/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into every test program. The EAL loads all of DPDK's drivers, 128 libraries of which a test needs
 * two or three, and each test is a process of its own: a third of its processor time. So this dlopen()
 * stands before libc's, and leaves drivers of cards out. Programs that a test starts load what they load without a test.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>

#include "base/bits.h"
#include "drivers/driver_file.h"

#define SEEN __attribute__((visibility("default")))

static const char *const wanted[] = {
	"bus_vdev", "mempool_ring", "net_af_packet", "net_af_xdp", "net_memif",	 "net_null",
	"net_pcap", "net_ring",	    "net_tap",	     "net_vhost",  "net_virtio",
};

SEEN void *dlopen(const char *file, int mode)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

	if (driver_file_is_other(file, wanted, ARRAY_SIZE(wanted)))
		file = NULL;
	return next(file, mode);
}
