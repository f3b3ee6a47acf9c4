/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into every test program. The EAL loads all of DPDK's drivers, 128 libraries of which a test needs
 * two or three, and each test is a process of its own: a third of its processor time. So drivers of cards are
 * left out. Programs that a test starts load what they load without a test.
 */
#include "base/bits.h"
#include "drivers/eal_search.h"

static const char *const wanted[] = {
	"bus_vdev", "mempool_ring", "net_af_packet", "net_af_xdp", "net_memif",	 "net_null",
	"net_pcap", "net_ring",	    "net_tap",	     "net_vhost",  "net_virtio",
};

__attribute__((constructor)) static void want_few_drivers(void)
{
	eal_search_want(wanted, ARRAY_SIZE(wanted));
}
