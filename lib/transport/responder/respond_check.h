/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of a request: REASON_NONE, or the first reason against it. */
#ifndef TRANSPORT_RESPOND_CHECK_H
#define TRANSPORT_RESPOND_CHECK_H

#include "transport/responder/respond.h"

/* Of a reliable connection: all of them, in order. */
enum reason respond_check(struct arrival *a);

/* The checks that do not depend on the sequence, for unreliable connections too. */
enum reason respond_check_access(const struct arrival *a);
enum reason respond_check_length(const struct arrival *a);
enum reason respond_check_key(const struct arrival *a);

/* Whether a needed receive request is there and well formed. */
static inline enum reason check_offer(const struct qp *qp, const struct recv_work *offer)
{
	if (offer == NULL)
		return REASON_RECEIVE_NOT_READY;
	return offer->num_sge <= qp->caps.max_recv_sge ? REASON_NONE : REASON_WORK_MALFORMED;
}

/* The room of a receive request, in octets. */
uint64_t receive_length(const struct recv_work *w);

#endif
