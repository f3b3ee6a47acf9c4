/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start of EAL. Messages of EAL, its drivers and getopt during the start are kept. After
 * success they follow on stderr. If an option is wrong, or a port does not exist, one line has
 * their essence.
 */
#ifndef APPS_UROCED_EAL_H
#define APPS_UROCED_EAL_H

#include "uroced_options.h"

/* 0, OPTIONS_USAGE if an option is wrong, or 1. */
int start_eal(struct eal_arguments *eal);
/*
 * After a successful start: prints the kept messages, unless `explained` says that another line has
 * their essence. A user who asked for a --log-level gets all of them.
 */
void start_eal_say(const struct eal_arguments *eal, bool explained);
/*
 * uroced_eal_end.c: rte_eal_cleanup(), before the end of the process. Meanwhile DPDK's interrupt
 * thread still runs. It would crash if a device, such as a memif peer, reported an event after its
 * handle was unmapped. So the thread is kept in a callback that does not return.
 */
void end_eal(void);

#endif
