/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRANSPORT_COPIED_H
#define TRANSPORT_COPIED_H

#include <stdbool.h>

#include "transport/qp.h"

/* Reports for what is under way are ignored from now on. */
void tickets_abandon(struct qp *qp);

/*
 * qp_can_receive, inline. Two more completions than packets: one may fail both its own and an open message's.
 * Two tickets: a SEND with invalidate takes them.
 */
static inline bool copies_have_room(const struct qp *qp)
{
	return qp->tickets.issued - qp->tickets.settled < qp->tickets.mask &&
	       qp->receives.done - qp->receives.taken < qp->receives.mask - 1;
}

#endif
