/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that the prompt's commands `set ...` and `clear ...` change, for the commands that show
 * them.
 */
#ifndef APPS_UROCED_SET_H
#define APPS_UROCED_SET_H

#include <stdbool.h>
#include <stdint.h>

/* DPDK's number of the engine's port; false: there is none. */
bool console_port_id(uint16_t *id);

#endif
