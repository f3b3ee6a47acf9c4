/* SPDX-License-Identifier: BSD-3-Clause */
/* A device lives as long as a list contains it or a context of it is open. Any thread. */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include "verbs/types.h"

void device_hold(struct device *d);
void device_drop(struct device *d);
/*
 * The device of that engine: one that ibv_get_device_list finds, otherwise one that answers at
 * `path` ("": no path). Takes a reference. NULL: the engine does not answer.
 */
struct device *device_of_engine(uint64_t engine_id, const char *path);

#endif
