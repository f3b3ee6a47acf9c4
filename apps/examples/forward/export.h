/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the flows of a forwarder into the memory of a collector. */
#ifndef EXPORT_H
#define EXPORT_H

#include <stdbool.h>

#include "flows.h"

struct export;

/* Connects to a collector. NULL, with a message on stderr, on failure. */
struct export *export_open(const char *host, const char *service, struct flow_table *flows);
/* Writes the counts so far, and adds new counts to the totals. False: the connection broke. */
bool export_now(struct export *x);
void export_close(struct export *x);

#endif
