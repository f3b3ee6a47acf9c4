/* SPDX-License-Identifier: BSD-3-Clause */
/* A device lives as long as a list names it or a context is open on it. */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include "verbs/types.h"

void device_hold(struct device *d);
void device_drop(struct device *d);

#endif
