/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start of EAL. What EAL, its drivers and getopt say meanwhile is kept. If all goes well it follows
 * on stderr; if an option is wrong, or there is no such port, one line has what it comes to.
 */
#ifndef APPS_UROCED_EAL_H
#define APPS_UROCED_EAL_H

#include "uroced_options.h"

/* 0, OPTIONS_USAGE if an option is wrong, or 1. */
int start_eal(struct eal_arguments *eal);
/*
 * After a start that went well: prints what was kept, unless `explained` says that another line has what it comes to.
 * A user who asked for a --log-level gets all of it.
 */
void start_eal_say(const struct eal_arguments *eal, bool explained);
/*
 * uroced_eal_end.c: rte_eal_cleanup(), before the end of the process. DPDK's interrupt thread goes on while that
 * unmaps the handles of devices, and crashes if one speaks then, such as a memif peer. So it is kept in a callback
 * that does not return.
 */
void end_eal(void);

#endif
