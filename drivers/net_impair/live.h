/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes what a net_impair port does while frames pass. */
#ifndef DRIVERS_IMPAIR_LIVE_H
#define DRIVERS_IMPAIR_LIVE_H

#include "drivers/net_impair/impair.h"

/*
 * The rules of this port. NULL: the port is another driver's. Its queues look at the rules for each
 * frame, so probabilities, delay, rate, queue and ecn may change at any time, one field at a time
 * (impair_rule_set). A caller that changes them keeps ecn below queue.
 */
struct impair_rules *net_impair_rules(uint16_t port);

#endif
