/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands under /uroce/ of DPDK's telemetry socket (dpdk-telemetry.py -f PREFIX), for exporters
 * that collect from DPDK programs. The socket is EAL's, and only the engine's user can open its
 * folder.
 */
#ifndef APPS_UROCED_TELEMETRY_H
#define APPS_UROCED_TELEMETRY_H

#include "engine/uroce.h"
#include "uroced_options.h"

/* Registers the commands; they answer until telemetry_close(). Main thread. */
void telemetry_open(struct uroce_engine *e, const struct uroced_options *o);
/* Waits for a command that is being answered. Later ones get the answer that there is no engine. */
void telemetry_close(void);

#endif
