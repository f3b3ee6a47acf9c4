/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints that one path holds back, in the order in which they came. */
#ifndef SIM_PARKING_H
#define SIM_PARKING_H

#include "endpoint.h"

struct parking {
	const struct path *path;
	struct endpoint *first, **last;
};

void parking_init(struct parking *p, const struct path *path);
/* At the end, unless it is there already. */
void parking_put(struct parking *p, struct endpoint *e);
/* NULL: there is none. */
struct endpoint *parking_take(struct parking *p);

#endif
