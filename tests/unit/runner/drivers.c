/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into every test program. The EAL loads all of DPDK's drivers, 128 libraries of which a test needs
 * two or three, and each test is a process of its own: a third of its processor time. So this dlopen()
 * stands before libc's, and leaves drivers of cards out. Programs that a test starts load all.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#define SEEN __attribute__((visibility("default")))

static const char *const wanted[] = {
	"bus_vdev", "mempool_ring", "net_af_packet", "net_af_xdp", "net_memif",	 "net_null",
	"net_pcap", "net_ring",	    "net_tap",	     "net_vhost",  "net_virtio",
};

static bool is_left_out(const char *file)
{
	const char *driver = file != NULL ? strstr(file, "/librte_") : NULL;

	if (driver == NULL || strstr(file, "/pmds-") == NULL)
		return false;
	driver += strlen("/librte_");
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (strncmp(driver, wanted[i], strlen(wanted[i])) == 0)
			return false;
	return true;
}

SEEN void *dlopen(const char *file, int mode)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

	return next(is_left_out(file) ? NULL : file, mode);
}
