/* SPDX-License-Identifier: BSD-3-Clause */
/* Changing what a net_impair port does while frames pass. */
#ifndef DRIVERS_IMPAIR_LIVE_H
#define DRIVERS_IMPAIR_LIVE_H

#include "drivers/net_impair/impair.h"

/*
 * The rules of this port; NULL: it is another driver's. Its queues look at them for each frame, so the
 * probabilities and the delay may change at any time, a field at a time (impair_rule_set). Rate, buffer
 * and the like are divided among the queues when the port starts, and stay.
 */
struct impair_rules *net_impair_rules(uint16_t port);

#endif
