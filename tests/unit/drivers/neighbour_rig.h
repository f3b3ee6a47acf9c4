/* SPDX-License-Identifier: BSD-3-Clause */
/* A neighbour table with addresses of its own: 02:..:01, 10.0.0.1/24 and fe80::1/64. */
#ifndef TESTS_DRIVERS_NEIGHBOUR_RIG_H
#define TESTS_DRIVERS_NEIGHBOUR_RIG_H

#include "drivers/neighbour/neighbour.h"

extern struct neighbour_table *t;
extern struct neighbour_frames out; /* what the table sends */

void neighbour_rig_open(void);
/* The same on a VLAN; closes the previous table. */
void neighbour_rig_on_vlan(uint16_t vlan);
void neighbour_rig_close(void);
/* Passes a received frame to the table; returns whether it was for the table. */
bool input(const uint8_t *frame, size_t length, nanotime now);

#endif
