/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of a campaign: each link with each load. */
#ifndef SIM_GRID_H
#define SIM_GRID_H

#include "sim/sim.h"

#define GRID_LINKS    5u
#define GRID_LOADS    6u
#define GRID_SETTINGS (GRID_LINKS * GRID_LOADS)

/* "LINK, LOAD" of setting 0 .. GRID_SETTINGS - 1. */
const char *grid_name(uint32_t setting);
/* The options that the setting fixes. The seed chooses all others. */
struct sim_config grid_config(uint32_t setting);

#endif
