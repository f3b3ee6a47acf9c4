/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices of libibverbs by their name. */
#ifndef APPS_DEVICES_H
#define APPS_DEVICES_H

#include <infiniband/verbs.h>

/* NULL: it is not listed, or cannot be opened. */
struct ibv_context *device_open(const char *name);

#endif
