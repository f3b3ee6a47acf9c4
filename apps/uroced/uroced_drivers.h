/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of DPDK's drivers the EAL loads. Its folder has 128 libraries, which take two fifths of the processor time of an
 * engine's start. An engine needs those of --netdev, and of its devices of --vdev if it knows them. The EAL has no option
 * for that.
 */
#ifndef APPS_UROCED_DRIVERS_H
#define APPS_UROCED_DRIVERS_H

#include "uroced_eal_options.h"

/* Before the EAL's start, which loads all drivers otherwise. `port`: of --port, "": none. */
void drivers_choose(const struct eal_arguments *eal, const char *port);

#endif
