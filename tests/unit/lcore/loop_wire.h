/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring that plays a cable: frames that a test's port took, at the head, arrive again at the tail.
 */
#ifndef TESTS_LCORE_LOOP_WIRE_H
#define TESTS_LCORE_LOOP_WIRE_H

#include <stdint.h>

#include "drivers/port.h"

#define WIRE 4096u

static struct rte_mbuf *wire[WIRE];
static uint32_t wire_head, wire_tail;

static inline uint16_t wire_rx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t i = 0;

	for (; i < n && wire_tail != wire_head; i++)
		m[i] = wire[wire_tail++ % WIRE];
	return i;
}

#endif
