/* SPDX-License-Identifier: BSD-3-Clause */
/* A device lives as long as a list names it or a context is open on it. */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include "verbs/types.h"

void device_hold(struct device *d);
void device_drop(struct device *d);
/*
 * The device of that engine, held: one that the program would list, or the one that answers at
 * this path ("": none). NULL: nobody says that he is it.
 */
struct device *device_of_engine(uint64_t engine_id, const char *path);

#endif
