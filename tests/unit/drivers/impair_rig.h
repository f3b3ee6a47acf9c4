/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL and frames for tests of net_impair. */
#ifndef TESTS_UNIT_DRIVERS_IMPAIR_RIG_H
#define TESTS_UNIT_DRIVERS_IMPAIR_RIG_H

#include <rte_mempool.h>

#define LENGTH 60u

extern struct rte_mempool *pool;

void impair_rig_begin(void);

/* A frame of LENGTH octets with this number in it, and ECT(0). */
struct rte_mbuf *frame(uint32_t sequence);

#endif
