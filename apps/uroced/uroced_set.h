/* SPDX-License-Identifier: BSD-3-Clause */
/* What the prompt's commands `set ...` and `clear ...` can change, for those that show it. */
#ifndef APPS_UROCED_SET_H
#define APPS_UROCED_SET_H

#include <stdbool.h>
#include <stdint.h>

/* DPDK's number of the engine's port; false: there is none. */
bool console_port_id(uint16_t *id);

#endif
