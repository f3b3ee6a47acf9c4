/* SPDX-License-Identifier: BSD-3-Clause */
/* The port that uroced's options name. */
#ifndef UROCED_PORT_H
#define UROCED_PORT_H

#include "uroced_eal_options.h"
#include "uroced_options.h"

/*
 * Opens the port for this many lcores, with the pool of its packet buffers, and puts both into
 * o->engine. If no port is named, there is none. 0, or after a message OPTIONS_USAGE if the command
 * line is wrong, else 1.
 */
int uroced_open_port(struct uroced_options *o, uint32_t lcores);
/* --port names a device that DPDK did not take, and uroced_open_port() will say why. */
bool uroced_port_is_missing(const struct uroced_options *o);

/*
 * Whether another engine has one of the devices. Called before EAL makes them, because making one
 * may harm the engine that has its interface. 0, or `why`.
 */
int uroced_check_devices(const struct eal_arguments *eal, const struct uroced_options *o, char *why,
			 size_t why_size);

#endif
