/* SPDX-License-Identifier: BSD-3-Clause */
/* What test programs without Criterion begin with: a demand, a clock, and a queue pair that is connected. */
#ifndef TESTS_VERBS_PLAIN_H
#define TESTS_VERBS_PLAIN_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* Ends the process with status 1, and says what and errno, if it is not so. */
void need(bool good, const char *what);

/* CLOCK_MONOTONIC, in microseconds. */
double now_us(void);

/* RESET to RTS, towards the queue pair of that number at the engine's own GID of index 1. */
void connect_plain(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t remote, int access,
		   enum ibv_mtu mtu);

#endif
