/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of EAL's options that EAL would let pass (it reads numbers with atoi()), would crash or wait for
 * ever with, or would answer without saying what it takes. Nothing here uses DPDK.
 */
#ifndef APPS_UROCED_EAL_OPTIONS_H
#define APPS_UROCED_EAL_OPTIONS_H

#include "uroced_options.h"

/*
 * Looks at what the user gave. 0, or OPTIONS_USAGE and `why`: one line. Options without a value, and those
 * that are unknown here, are left to EAL.
 */
int eal_options_check(const struct eal_arguments *eal, char *why, size_t why_size);

/* Calls each() for what every --vdev says, until one does not return 0, which is returned. */
int eal_options_vdevs(const struct eal_arguments *eal, int (*each)(void *arg, const char *device),
		      void *arg);

/*
 * The driver of this device of --vdev, or of a port of this name, if it is one that needs no other driver. NULL: any driver may be
 * needed.
 */
const char *eal_options_driver(const char *device);

/* Whether the user names a device for which any driver may be needed, or a library of drivers. */
bool eal_options_choose_drivers(const struct eal_arguments *eal);

#endif
