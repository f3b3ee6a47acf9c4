/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_drivers.h"

#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/eal_search.h"

#define OF_DEVICES 8u /* kinds of --vdev that eal_options_driver() knows */

#define ALWAYS 6u

/* --mbuf-pool-ops-name may name any of these kinds of mempools. */
static const char *wanted[ALWAYS + OF_DEVICES] = {
	"bus_vdev.so",	    "mempool_bucket.so", "mempool_ring.so",
	"mempool_stack.so", "net_af_packet.so",	 "net_af_xdp.so",
};
static size_t count = ALWAYS;

/* eal_options_choose_drivers() was false, so the driver of each device is known. */
static int want(void *none, const char *device)
{
	const char *driver = eal_options_driver(device);

	for (size_t i = 0; i < count; i++)
		if (strcmp(wanted[i], driver) == 0)
			return 0;
	if (count == ARRAY_SIZE(wanted))
		return 1;
	wanted[count++] = driver;
	return 0;
}

void drivers_choose(const struct eal_arguments *eal, const char *port)
{
	if ((port[0] == '\0' || eal_options_driver(port) != NULL) &&
	    !eal_options_choose_drivers(eal) && eal_options_vdevs(eal, want, NULL) == 0)
		eal_search_want(wanted, count);
}
