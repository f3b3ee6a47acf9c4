/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of DPDK's drivers the EAL loads. Its folder has 128 libraries, which take two fifths of the processor time of an
 * engine's start. An engine without --port needs only those of --netdev. The EAL has no option for that.
 */
#ifndef APPS_UROCED_DRIVERS_H
#define APPS_UROCED_DRIVERS_H

#include <stdbool.h>

/* Before the EAL's start. False, as at first: all. */
void drivers_leave_out(bool those_of_ports);

#endif
