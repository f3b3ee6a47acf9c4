/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that polls in vain offers its core, because an lcore may need it.
 *
 * sched_yield(2) lets other threads of the same group of the scheduler run: of the same cgroup, and
 * with the kernel's autogroups of the same session. Engine and program often are in two groups. So
 * a thread on whose processor an lcore waits sleeps for a moment if its yield let no thread run. Nothing
 * can come from that lcore before it runs.
 */
#ifndef CLIENT_OFFER_H
#define CLIENT_OFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/arena.h"

/* `crowded`: there are too few cores for all threads, so the thread yields to others anyway. */
void offer_core(const struct client_page *page, uint32_t lcores, bool crowded);

#endif
