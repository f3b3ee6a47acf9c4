/* SPDX-License-Identifier: BSD-3-Clause */
/* A descriptor on which the control thread waits. */
#ifndef CONTROL_WATCH_H
#define CONTROL_WATCH_H

#include <stdint.h>

struct engine;

struct watch {
	int fd;
	void (*ready)(struct watch *w, uint32_t events);
};

int watch_add(struct engine *e, struct watch *w);
/* EPOLLIN, or 0 for nothing but the descriptor's end (EPOLLHUP, EPOLLERR). */
void watch_change(struct engine *e, struct watch *w, uint32_t events);
void watch_remove(struct engine *e, struct watch *w);

#endif
