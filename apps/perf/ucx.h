/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX over TCP within this host, for `uroce perf --report`, if its ucx_perftest is installed: tagged messages
 * over the loopback interface, with both ends in one thread, as the engines are by default.
 */
#ifndef APPS_PERF_UCX_H
#define APPS_PERF_UCX_H

#include <stdbool.h>
#include <stdint.h>

/* Whether it runs at all. */
bool ucx_answers(void);
/* Bits a second with messages of that size. False: it failed. */
bool ucx_rate(uint32_t size, double seconds, double *bits);
/* The time, in us, that this percentage of messages of that size took at most, one way. False: it failed. */
bool ucx_latency(uint32_t size, double percent, double seconds, double *us);

#endif
