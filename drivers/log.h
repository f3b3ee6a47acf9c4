/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of the engine and its drivers. It is DPDK's log, type "uroce". So
 * `--log-level=uroce:LEVEL` sets its level, and a program with the engine inside has one log for
 * everything (rte_openlog_stream). The libraries in programs have a log of their own
 * (client/log.h), because they contain no DPDK.
 */
#ifndef DRIVERS_LOG_H
#define DRIVERS_LOG_H

#include <rte_log.h>

extern int uroce_log;

/* level: ERR if something in the engine failed, WARNING if the cause is outside of it. */
#define LOG(level, format, ...) \
	rte_log(RTE_LOG_##level, (uint32_t)uroce_log, "uroce: " format "\n", ##__VA_ARGS__)

#endif
