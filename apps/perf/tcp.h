/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's TCP within this host, for `uroce perf --report`: one connection over the loopback
 * interface, which neither makes nor checks sums. Both ends are threads on as many cores as the engines
 * have.
 */
#ifndef APPS_PERF_TCP_H
#define APPS_PERF_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"

struct tcp_pair {
	int near, far; /* sockets */
	bool two; /* cores */
};

/* 0, or 1 and one line in `why`: the host has no such interface. */
int tcp_open(struct tcp_pair *t, bool two_cores, char *why, size_t why_size);
void tcp_close(struct tcp_pair *t);
/* Bits a second with writes of that size. 0: it failed. */
double tcp_rate(struct tcp_pair *t, uint32_t size, double seconds);
/* Half round trips of messages of that size, at most 4 KiB. */
int tcp_latency(struct tcp_pair *t, uint32_t size, double seconds, struct histogram *h);

#endif
